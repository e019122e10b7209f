"""Members of archives, as streams of bytes.

Nothing is ever extracted under a name that an archive chose: the caller lists the file names it
wants, and only regular files of these names come out. So `../` and links lead nowhere. By hand,
since pooch's processors unpack archives to disk under the names in them.
"""

import gzip
import subprocess
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

Member = tuple[str, IO[bytes]]  # a file's name, without folders, and its content


def from_tar(archive: Path, names: Collection[str]) -> Iterator[Member]:
    """Regular files of a tar archive, compressed or not, whose bare name is among `names`."""
    with tarfile.open(archive) as tar:
        yield from _wanted(tar, names)


def from_deb(package: Path, names: Collection[str]) -> Iterator[Member]:
    """`from_tar` of a Debian package, through dpkg-deb, which knows every compression."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            yield from _wanted(tar, names)
        assert process.stdout is not None
        while process.stdout.read(1 << 16):  # read to the end, or dpkg-deb dies of a broken pipe
            pass
    if process.returncode:
        raise OSError(f"dpkg-deb could not read {package.name}")


def from_gzip(path: Path) -> Iterator[Member]:
    """The one file inside a .gz, named as the .gz without its ending."""
    with gzip.open(path) as stream:
        yield path.name.removesuffix(".gz"), cast(IO[bytes], stream)


def from_zip(archive: Path, names: Collection[str]) -> Iterator[Member]:
    """Files of a zip archive, such as a wheel, whose bare name is among `names`."""
    left = set(names)
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            name = PurePosixPath(entry.filename).name
            if name in left and not entry.is_dir():
                left.remove(name)
                with opened.open(entry) as content:
                    yield name, content


def _wanted(tar: tarfile.TarFile, names: Collection[str]) -> Iterator[Member]:
    left = set(names)
    for entry in tar:
        name = PurePosixPath(entry.name).name
        if entry.isfile() and name in left:
            left.remove(name)
            content = tar.extractfile(entry)
            assert content is not None  # a regular file has content
            yield name, content
        if not left:
            return
