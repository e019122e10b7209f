"""Files at any address that fsspec knows: a path, or a URL such as s3://bucket/folder/*.parquet."""

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from auxhash.compute.extras import install
from auxhash.files.writing import MAX_NAME_CHARACTERS, writing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

WILD = re.compile(r"[*?\[]")
# Facts that file systems state of a file, and that change with its content.
CHANGING = ("size", "mtime", "ETag", "etag", "md5Hash", "checksum", "LastModified", "created")
TEMPORARY = re.compile(r"\.(.{1,50})\.[0-9a-f]{8}")


class FileAt(NamedTuple):
    """A file, or where one is to be."""

    system: "AbstractFileSystem"
    path: str

    def __str__(self) -> str:
        if is_local(self.system):
            return self.path
        return str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def mark(self) -> str:
        """A mark of the file's content, from what its file system states of it now."""
        self.system.invalidate_cache()
        info = self.system.info(self.path)
        return repr([(name, str(info[name])) for name in CHANGING if name in info])

    def open(self) -> IO[bytes]:
        """The file, to be read as bytes."""
        opened: IO[bytes] = self.system.open(self.path, "rb")
        return opened

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """A file to write bytes to; it appears in this place complete, and only on success."""
        if is_local(self.system):
            with writing(Path(self.path)) as temporary, temporary.open("wb") as out:
                yield out
            return
        folder, _, name = self.path.rpartition("/")
        hidden = f"{folder}/.{name[:MAX_NAME_CHARACTERS]}.{secrets.token_hex(4)}"
        self.system.makedirs(folder, exist_ok=True)
        try:
            with self.system.open(hidden, "wb") as out:
                yield out
            self.system.mv(hidden, self.path)
        finally:
            with suppress(Exception):  # it has been moved
                self.system.rm_file(hidden)


def is_pattern(address: str) -> bool:
    """Return True if an address is that of many files, or of another machine."""
    return "://" in address or (bool(WILD.search(address)) and not Path(address).exists())


def match(pattern: str) -> tuple[str, list[FileAt]]:
    """Find the folder of a pattern, and all files that match, by name."""
    system, path = _system(pattern)
    if system.isdir(path):
        raise ValueError(f"{pattern} is a folder: give a pattern of files, as {pattern}/*.parquet")
    matched = system.glob(path, detail=True)
    files = [
        FileAt(system, name)
        for name, info in sorted(matched.items())
        if info["type"] == "file" and not name.rpartition("/")[2].startswith(".")
    ]
    if not files:
        raise FileNotFoundError(f"no files match {pattern}")
    wild = WILD.search(path)
    folder = (path[: wild.start()] if wild else path).rpartition("/")[0]
    return folder, files


def folder_of(address: str) -> FileAt:
    """A folder to write files to, which need not exist."""
    system, path = _system(address)
    if system.isfile(path):
        raise NotADirectoryError(f"{address} is a file, and many files are to be written: a folder")
    return FileAt(system, path.rstrip("/"))


def inside(folder: FileAt) -> list[FileAt]:
    """All files below a folder."""
    if not folder.system.isdir(folder.path):
        return []
    folder.system.invalidate_cache()
    return [FileAt(folder.system, path) for path in folder.system.find(folder.path)]


def remove_leftovers(folder: FileAt, targets: Iterable[FileAt]) -> None:
    """Remove what is left of files whose writers were killed in the middle."""
    names = {(one.path.rpartition("/")[0], one.name[:MAX_NAME_CHARACTERS]) for one in targets}
    for place in inside(folder):
        left = TEMPORARY.fullmatch(place.name)
        if left and (place.path.rpartition("/")[0], left[1]) in names:
            with suppress(FileNotFoundError):
                place.system.rm_file(place.path)


def is_local(system: "AbstractFileSystem") -> bool:
    return "file" in ([system.protocol] if isinstance(system.protocol, str) else system.protocol)


def _system(address: str) -> tuple["AbstractFileSystem", str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"many files need fsspec: {install('data')}") from None
    system, path = url_to_fs(address)
    return system, path
