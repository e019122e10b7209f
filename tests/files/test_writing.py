"""Files whole or not at all, where they belong, with the permissions they ought to have."""

import os
import socket
import stat
import subprocess
import sys
import textwrap

import pytest

from auxhash.files.writing import LockedError, check_regular, destination, locked, writing
from tests.experiments.datasets.made import everything_in

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
not_root = pytest.mark.skipif(
    sys.platform != "win32" and os.geteuid() == 0, reason="root may write anywhere"
)


def write(path, content=b"new"):
    with writing(path) as temporary:
        temporary.write_bytes(content)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "deep" / "file"
    write(path, b"old")
    with pytest.raises(KeyError), writing(path) as temporary:
        temporary.write_bytes({}["nothing to write"])
    assert path.read_bytes() == b"old"
    assert everything_in(tmp_path) == ["deep/file"]


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027, 0o002])
def test_a_new_file_honours_the_umask(tmp_path, umask, mask):
    umask(mask)
    write(tmp_path / "file")
    assert mode(tmp_path / "file") == 0o666 & ~mask


@posix
@pytest.mark.parametrize("own", [0o600, 0o640, 0o666, 0o444])
def test_an_existing_file_keeps_its_permissions(tmp_path, umask, own):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(own)
    with writing(path) as temporary:
        assert mode(temporary) == 0o600  # nobody else looks on
        temporary.write_bytes(b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", own)


@posix
def test_links_are_written_through(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("far/file")
    (tmp_path / "second").symlink_to("link")
    write(tmp_path / "second")
    assert (tmp_path / "second").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path / "far")) == ["file"]


def odd_paths(folder):
    """Paths that cannot be written, and what is said of each."""
    (folder / "file").write_bytes(b"a file")
    (folder / "folder").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    # Of all devices, one beside which no file can be made, whatever the code under test does.
    device = os.ttyname(os.openpty()[1])
    (folder / "to-device").symlink_to(device)
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.getcwd()
        os.chdir(folder)  # the path of a socket has a short limit
        listening.bind("socket")
        os.chdir(before)
    return {
        "folder": "folder is a folder, and a file is to be written",
        "dangling": "dangling is a link to nowhere, which does not exist",
        "loop": "loop.*|symbolic links",
        "pipe": "pipe is a pipe, and a regular file is to be written",
        "socket": "socket is a socket, and",
        device: "is a device, and",
        "to-device": "to-device is a device, and",
        "file/below": "below cannot be written: .*file is no folder",
        "file/far/below": "below cannot be written: .*file is no folder",
        "n" * 300: "cannot be written: File name too long",
    }


@posix
def test_paths_that_cannot_be_written(tmp_path):
    for name, message in odd_paths(tmp_path).items():
        before = everything_in(tmp_path)
        for attempt in (destination, write):
            with pytest.raises(OSError, match=message) as caught:
                attempt(tmp_path / name)
            assert "\n" not in str(caught.value)
        assert everything_in(tmp_path) == before


def test_the_longest_names_can_be_written(tmp_path):
    for letter, n in (("n", 255), ("ü", 127)):
        write(tmp_path / (letter * n))
        assert (tmp_path / (letter * n)).read_bytes() == b"new"


@posix
@not_root
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="file cannot be written: no permission in"):
        write(tmp_path / "file")


def test_errors_name_the_path_that_was_given(tmp_path):
    path = tmp_path / "file"
    for fault in (
        lambda temporary: (_ for _ in ()).throw(OSError(28, "No space left on device")),
        lambda temporary: (temporary.unlink(), temporary.read_bytes()),
        lambda temporary: (_ for _ in ()).throw(PermissionError(13, "denied", str(temporary))),
    ):
        with pytest.raises(OSError, match=r"'[^']*/file'$"), writing(path) as temporary:
            fault(temporary)
        assert everything_in(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="elsewhere"), writing(path):
        (tmp_path / "elsewhere").read_bytes()


@posix
def test_what_is_no_regular_file_is_not_read(tmp_path):
    names = odd_paths(tmp_path)
    check_regular(tmp_path / "file", "a model")
    for name in set(names) & {"folder", "pipe", "socket", "to-device"}:
        with pytest.raises(OSError, match=r"and a model is a (regular )?file"):
            check_regular(tmp_path / name, "a model")


HOLD = """
    import sys
    from pathlib import Path
    from auxhash.files.writing import locked

    with locked(Path(sys.argv[1]), wait=True):
        print("held", flush=True)
        sys.stdin.read()
"""


def holder(path):
    """A process that holds the lock until its input is closed."""
    command = [sys.executable, "-c", textwrap.dedent(HOLD), str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_lock_is_held_by_one_process(tmp_path):
    path = tmp_path / "lock"
    with holder(path) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match="in use by another process"), locked(path):
            pass
        with holder(path) as third:  # which waits
            other.stdin.close()
            assert third.stdout.readline() == "held\n"
            third.kill()
            third.wait()
    with locked(path), locked(tmp_path / "another"):
        assert path.exists()
    if sys.platform != "win32":
        assert everything_in(tmp_path) == []
