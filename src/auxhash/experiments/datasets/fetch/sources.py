"""Sources of the files of a data set: the cache, the official address, then a mirror.

A file is checked against its checksum before every use. One that is wrong in the cache is an error,
never loaded and never replaced behind the user's back; `auxhash data get` replaces it. pooch has
checksums, but neither several sources for one file nor locks between processes.
"""

import hashlib
import http.client
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol
from urllib.parse import urlparse

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from auxhash.experiments.datasets.fetch import archives, cache, clients
from auxhash.experiments.datasets.fetch.archives import Member
from auxhash.experiments.datasets.fetch.download import Report, download
from auxhash.files.writing import locked, writing

# All errors that a source may raise if it is down, changed or broken.
BROKEN = (
    OSError,
    ImportError,  # a mirror of pictures needs Pillow
    EOFError,
    ValueError,
    http.client.HTTPException,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


class DataError(RuntimeError):
    """A data set that cannot be fetched, or whose files are not what they should be."""


@dataclass(frozen=True)
class File:
    """A file as it should be: its sha256 or md5 sum or, where none is known, its size."""

    name: str
    md5: str | None = None
    size: int | None = None
    sha256: str | None = None

    @property
    def checked_by(self) -> str:
        """The strongest of what is known of the file: sha256, md5 or size."""
        return "sha256" if self.sha256 else "md5" if self.md5 else "size"

    def fault(self, path: Path) -> str | None:
        """Fault of the file at `path` in words, or None."""
        if not path.is_file():
            return "missing"
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"{size} bytes where {self.size} are right"
        for kind in ("md5", "sha256"):
            right = getattr(self, kind)
            if right is not None and (actual := cache.checksum(path, kind)) != right:
                return f"{kind} {actual} where {right} is right ({size} bytes)"
        return None


@dataclass(frozen=True)
class Snapshot(File):
    """A file of a source that moves on, so that no sum is right for ever.

    Its first line is the sha256 of all that follows, as it was fetched.
    """

    @property
    def checked_by(self) -> str:
        return "sha256, as fetched,"

    def fault(self, path: Path) -> str | None:
        if not path.is_file():
            return "missing"
        first, _, content = path.read_bytes().partition(b"\n")
        actual = hashlib.sha256(content).hexdigest()
        if actual != first.decode(errors="replace"):
            return f"sha256 {actual} where its first line has another"
        return None


class Source(Protocol):
    """One way to get the files."""

    def members(self, workspace: Path, report: Report) -> Iterator[Member]:
        """Fetch into `workspace`, and yield names and contents of files.

        A temporary folder is the workspace, except where a broken download can be resumed.
        """


@dataclass(frozen=True)
class Official:
    """Archives at the authors' own addresses, each opened by `opened`."""

    addresses: tuple[str, ...]
    opened: Callable[[Path], Iterator[Member]]

    def __str__(self) -> str:
        return f"official address ({urlparse(self.addresses[0]).hostname})"

    def members(self, workspace: Path, report: Report) -> Iterator[Member]:
        partial = workspace.parent / "partial"  # outlives the workspace
        for address in self.addresses:
            path = workspace / Path(urlparse(address).path).name
            try:
                download(address, partial / path.name, report)
                (partial / path.name).replace(path)
            finally:
                with suppress(OSError):  # something to resume from is still in there
                    partial.rmdir()
            yield from self.opened(path)


@dataclass(frozen=True)
class Package:
    """A version of a package that a client of its index can fetch."""

    package: str
    version: str
    opened: Callable[[Path], Iterator[Member]]

    kind: ClassVar[str] = "Python package"

    def __str__(self) -> str:
        return f"{self.kind} {self.package} {self.version}"

    def members(self, workspace: Path, report: Report) -> Iterator[Member]:
        yield from self.opened(self.fetched(workspace))

    def fetched(self, folder: Path) -> Path:
        """Return the package's file, in `folder`."""
        raise NotImplementedError


class Npm(Package):
    """A package that npm can fetch."""

    kind = "npm package"

    def fetched(self, folder: Path) -> Path:
        return clients.npm_pack(self.package, self.version, folder)


@dataclass(frozen=True)
class Pip(Package):
    """A source distribution that pip can fetch; `backend` is what its pyproject.toml names."""

    backend: str

    def fetched(self, folder: Path) -> Path:
        return clients.pip_download(self.package, self.version, self.backend, folder)


class Wheel(Package):
    """A package of the Python index that pip can fetch built, as a wheel."""

    def fetched(self, folder: Path) -> Path:
        return clients.pip_wheel(self.package, self.version, folder)


@dataclass(frozen=True)
class Debian:
    """A Debian package, already installed (its files are in `installed`) or fetched by apt-get."""

    package: str
    installed: Path
    names: tuple[str, ...]
    opened: Callable[[Path], Iterator[Member]]

    def __str__(self) -> str:
        return f"Debian package {self.package}"

    def members(self, workspace: Path, report: Report) -> Iterator[Member]:
        if not all((self.installed / name).is_file() for name in self.names):
            package = clients.apt_download(self.package, workspace)
            for name, content in archives.from_deb(package, self.names):
                with (workspace / name).open("wb") as out:
                    shutil.copyfileobj(content, out)
            home = workspace
        else:
            home = self.installed
        for name in self.names:
            yield from self.opened(home / name)


@dataclass(frozen=True)
class AptLists:
    """English descriptions of all packages in the archive that apt uses on this machine."""

    opened: Callable[[list[Path]], Iterator[Member]]

    def __str__(self) -> str:
        return "package lists of apt, which Debian and its relatives have"

    def members(self, workspace: Path, report: Report) -> Iterator[Member]:
        yield from self.opened(clients.apt_descriptions(workspace))


@dataclass(frozen=True)
class Collection:
    """The files of a data set: a folder in the cache, what belongs there, and its sources.

    `data_set` is what `auxhash data get` takes to fetch them, if not the name of the folder.
    """

    name: str
    files: tuple[File, ...]
    sources: tuple[Source, ...]
    data_set: str | None = None

    @property
    def home(self) -> Path:
        return cache.folder() / self.name

    def faults(self) -> dict[str, str]:
        """Faults in words, by file name; empty where the collection is complete."""
        checked = ((file.name, file.fault(self.home / file.name)) for file in self.files)
        return {name: fault for name, fault in checked if fault}

    def present(self) -> bool:
        """Return True if every file is there, right or wrong."""
        return all((self.home / file.name).is_file() for file in self.files)

    def begun(self) -> bool:
        """Return True if any file is there."""
        return any((self.home / file.name).is_file() for file in self.files)

    def obtain(self, repair: bool = False) -> Path:
        """The folder with all files in it, fetched where missing, and checked.

        Of several processes one fetches, and the others wait for it.

        Raises DataError where a file in the cache is wrong (unless `repair`, which fetches it
        anew) and where every source fails.
        """
        if self._to_fetch(repair):
            self.home.mkdir(parents=True, exist_ok=True)
            with locked(self.home / ".lock", wait=True):
                if names := self._to_fetch(repair):  # still, after waiting
                    self._fetch(names)
        return self.home

    def _to_fetch(self, repair: bool) -> set[str]:
        """Names of missing and wrong files; without `repair`, wrong ones are an error."""
        faults = self.faults()
        wrong = {name: fault for name, fault in faults.items() if fault != "missing"}
        if wrong and not repair:
            listed = "".join(f"\n  {self.home / name}: {fault}" for name, fault in wrong.items())
            raise DataError(
                f"{self.name}: wrong in the cache:{listed}\n"
                f"`auxhash data get {self.data_set or self.name}` fetches the right files."
            )
        return set(faults)

    def _fetch(self, names: set[str]) -> None:
        """Install these files from the first source whose files pass the check."""
        failures = []
        for source in self.sources:
            try:
                return self._install(source, set(names))
            except BROKEN as error:
                failures.append(f"\n  {source}: {error}")
        raise DataError(
            f"{self.name}: no source could be reached or none was right:{''.join(failures)}\n"
            f"With the files at hand, put them into {self.home}: {', '.join(sorted(names))}"
        )

    def _install(self, source: Source, wanted: set[str]) -> None:
        """Put the wanted files of a source into the cache, each only once it is checked."""
        by_name = {file.name: file for file in self.files}
        self.home.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".fetch-", dir=self.home) as workspace,
            _bar(f"{self.name}: {source}") as report,
        ):
            for name, content in source.members(Path(workspace), report):
                if name not in wanted:
                    continue
                with writing(self.home / name) as temporary:
                    with temporary.open("wb") as out:
                        shutil.copyfileobj(content, out, cache.BLOCK_BYTES)
                    if fault := by_name[name].fault(temporary):
                        raise ValueError(f"{name} came with {fault}")
                wanted.discard(name)
        if wanted:
            raise ValueError(f"it does not hold {', '.join(sorted(wanted))}")


@contextmanager
def _bar(text: str) -> Iterator[Report]:
    """A progress bar on the terminal, if there is one, fed by the report that is yielded."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
