import gzip
import hashlib
import io
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from auxhash.experiments.datasets.fetch import archives, download
from auxhash.experiments.datasets.fetch.sources import (
    Collection,
    DataError,
    Debian,
    File,
    Npm,
    Official,
    Pip,
    Snapshot,
)
from tests.experiments.datasets.made import everything_in, tar_of

CONTENT = {"one": b"first file", "two": b"second file"}


@dataclass
class Made:
    """A source that yields what it is told, and counts how often it is asked."""

    content: dict[str, bytes]
    error: Exception | None = None
    asked: list[Path] = field(default_factory=list)

    def __str__(self):
        return "made up"

    def members(self, workspace, report):
        self.asked.append(workspace)
        report(1, 2)
        if self.error:
            raise self.error
        for name, content in self.content.items():
            yield name, io.BytesIO(content)


def collection(*sources):
    files = (File(name, hashlib.md5(content).hexdigest()) for name, content in CONTENT.items())
    return Collection("set", tuple(files), sources)


def test_fetched_once_then_found_in_the_cache(folder):
    source = Made({"../../other": b"not wanted", **CONTENT})
    files = collection(source)
    assert not files.present()
    for _ in range(2):
        assert files.obtain() == folder / "set"
    assert len(source.asked) == 1
    assert files.present()
    assert not files.faults()
    assert everything_in(folder.parent) == ["cache/set/one", "cache/set/two"]


def test_of_several_at_once_one_fetches(folder):
    """The others wait, and find the files that it has put there."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Made):
        def members(self, workspace, report):
            begun.set()
            go_on.wait(60)
            yield from super().members(workspace, report)

    source = Slow(CONTENT)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(collection(source).obtain)
        begun.wait(60)
        second = pool.submit(collection(source).obtain)
        assert not wait([second], timeout=0.3).done
        go_on.set()
        assert first.result() == second.result() == folder / "set"
    assert len(source.asked) == 1
    assert everything_in(folder) == ["set/one", "set/two"]


def test_sources_in_their_order(folder):
    first, second, third = Made({}, OSError("down")), Made(CONTENT), Made(CONTENT)
    collection(first, second, third).obtain()
    assert [len(source.asked) for source in (first, second, third)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"one": CONTENT["one"], "two": b"second fil"}, "two came with md5 .* is right"),
        ({"one": CONTENT["one"]}, "it does not hold two"),
        ({}, "it does not hold one, two"),
    ],
)
def test_a_wrong_source_leaves_no_wrong_file(folder, content, reason):
    with pytest.raises(DataError, match=reason):
        collection(Made(content)).obtain()
    assert not (folder / "set" / "two").exists()
    assert all("." not in name for name in everything_in(folder))


def test_a_wrong_file_in_the_cache_is_an_error_until_repaired(folder):
    source = Made(CONTENT)
    files = collection(source)
    files.obtain()
    (folder / "set" / "two").write_bytes(b"truncat")
    with pytest.raises(DataError, match=r"(?s)set/two: md5 .* is right .*auxhash data get set"):
        files.obtain()
    assert files.faults().keys() == {"two"}
    files.obtain(repair=True)
    assert (folder / "set" / "two").read_bytes() == CONTENT["two"]


def test_sizes_stand_in_for_sums(folder):
    files = Collection("set", (File("one", size=11),), (Made(CONTENT),))
    with pytest.raises(DataError, match="one came with 10 bytes where 11 are right"):
        files.obtain()


def test_the_last_error_tells_all_reasons_and_what_to_do(folder):
    failing = Made({}, OSError("down")), Made({}, ValueError("changed"))
    with pytest.raises(DataError) as caught:
        collection(*failing).obtain()
    text = str(caught.value)
    assert "down" in text
    assert "changed" in text
    assert f"put them into {folder / 'set'}: one, two" in text


def test_npm_and_pip_packages(folder, tmp_path, client, monkeypatch):
    archive = tar_of(tmp_path / "a.tgz", {f"package/{name}": c for name, c in CONTENT.items()})
    client("npm", f"shutil.copy({str(archive)!r}, 'a-1.tgz')")
    client("pip", f"shutil.copy({str(archive)!r}, 'a-1.tar.gz')")

    def opened(path):
        return archives.from_tar(path, CONTENT)

    for source in (Npm("a", "1", opened), Pip("a", "1", opened, "tool.build")):
        files = collection(source)
        assert files.obtain().is_dir()
        assert everything_in(folder) == ["set/one", "set/two"]
        shutil.rmtree(folder)


def test_a_damaged_package_is_a_reason_not_a_traceback(folder, tmp_path, client):
    archive = tar_of(tmp_path / "a.tgz", {"one": bytes(10**5), "two": b""})
    archive.write_bytes(archive.read_bytes()[:-60])
    client("npm", f"shutil.copy({str(archive)!r}, 'a-1.tgz')")
    with pytest.raises(DataError, match="npm package a 1: "):
        collection(Npm("a", "1", lambda path: archives.from_tar(path, CONTENT))).obtain()
    assert everything_in(folder) == []


def test_debian_package_installed_or_downloaded(folder, tmp_path, client):
    packed = {f"{name}.gz": gzip.compress(content) for name, content in CONTENT.items()}
    package = tar_of(tmp_path / "p.deb", {f"./usr/{name}": c for name, c in packed.items()})
    client("apt-get", f"shutil.copy({str(package)!r}, 'p_1.deb')")
    client("dpkg-deb", "import gzip\nsys.stdout.buffer.write(gzip.open(sys.argv[2]).read())")
    installed = tmp_path / "installed"
    files = collection(Debian("p", installed, tuple(packed), archives.from_gzip))
    files.obtain()
    assert everything_in(folder) == ["set/one", "set/two"]
    shutil.rmtree(folder)
    shutil.rmtree(tmp_path / "bin")  # nothing to download with
    installed.mkdir()
    for name, content in packed.items():
        (installed / name).write_bytes(content)
    files.obtain()
    assert everything_in(folder) == ["set/one", "set/two"]


def test_official_addresses_keep_what_can_be_resumed(folder, monkeypatch):
    packed = {name: gzip.compress(content) for name, content in CONTENT.items()}
    broken = ["two.gz"]

    def fetch(address, part, report):
        name = Path(address).name
        if name in broken:
            part.path.write_bytes(b"half")
            broken.clear()
            raise ConnectionError("broke off")
        part.path.write_bytes(packed[name.removesuffix(".gz")])

    monkeypatch.setattr(download, "_fetch", fetch)
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    addresses = tuple(f"https://example.org/{name}.gz" for name in CONTENT)
    files = collection(Official(addresses, archives.from_gzip))
    with pytest.raises(DataError, match=r"official address \(example\.org\): broke off"):
        files.obtain()
    assert everything_in(folder) == ["set/one", "set/partial/two.gz.part"]
    files.obtain()
    assert everything_in(folder) == ["set/one", "set/two"]
    assert not (folder / "set" / "partial").exists()


def test_a_snapshot_is_checked_by_its_first_line(folder):
    content = hashlib.sha256(b"one\ntwo\n").hexdigest().encode() + b"\none\ntwo\n"
    files = Collection("set", (Snapshot("list"),), (Made({"list": content}),), "sets")
    path = files.obtain() / "list"
    for wrong in (content[:-1], content + b"x", b"", content.replace(b"two", b"owt"), b"\xff\n"):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=r"(?s)list: sha256 .*auxhash data get sets`"):
            files.obtain()
    files.obtain(repair=True)
    assert path.read_bytes() == content
    with pytest.raises(DataError, match="list came with sha256"):
        Collection("other", (Snapshot("list"),), (Made({"list": b"no sum\n"}),)).obtain()
