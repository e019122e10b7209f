"""Write a file completely or not at all, and lock files between processes."""

import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MAX_NAME_CHARACTERS = 50  # of a file's name, that its temporary file keeps: names have a limit
LOCK_PAUSE_SECONDS = 0.1  # between two attempts to take a lock
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors that only writing raises


class LockedError(BlockingIOError):
    """A lock that another process holds."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the place of `path` only on success.

    A link stays a link, and its target is replaced. A new file gets the permissions that the umask
    allows, an existing one keeps its own. Raises OSError, which names `path`.
    """
    target = destination(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".{target.name[:MAX_NAME_CHARACTERS]}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The system applies the umask; nobody else may read what replaces a private file.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if mode is None else 0o600))
        yield temporary
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())  # or a power cut could leave the new name without content
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        if error.filename in (str(temporary), temporary) or error.errno in DISK_FULL:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def destination(path: Path) -> Path:
    """The path that writing to `path` replaces, links followed; OSError if it cannot be written.

    Quick, so that a long computation can check before it begins.
    """
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise FileNotFoundError(
                f"{path} is a link to {os.readlink(path)}, which does not exist"
            ) from None
        _check_folder(path)
        return path
    except NotADirectoryError:
        above = next(folder for folder in path.absolute().parents if os.path.exists(folder))
        raise NotADirectoryError(f"{path} cannot be written: {above} is no folder") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{path} is a folder, and a file is to be written")
    if not stat.S_ISREG(kind):
        raise OSError(f"{path} is {_named(kind)}, and a regular file is to be written")
    target = path.resolve()
    _check_folder(target)
    return target


def check_regular(path: str | os.PathLike[str], what: str) -> None:
    """Raise OSError unless `path` is a regular file: reading others could take forever."""
    kind = os.stat(path).st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder, and {what} is a file")
    if not stat.S_ISREG(kind):
        raise OSError(f"{os.fspath(path)} is {_named(kind)}, and {what} is a regular file")


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock of this file; the system releases it when a process is killed.

    If another process holds it, wait until it is free, or raise LockedError.
    """
    while True:
        with path.open("a+b") as lock:
            while not _hold(lock):
                if not wait:
                    raise LockedError(errno.EAGAIN, "in use by another process", str(path))
                time.sleep(LOCK_PAUSE_SECONDS)
            if not _still_there(lock, path):
                continue  # its last holder has removed it
            try:
                yield
            finally:
                with suppress(OSError):  # Windows removes no file that is open
                    path.unlink()
            return


def _hold(lock: BinaryIO) -> bool:
    """Take the lock if it is free; closing the file releases it."""
    try:
        if sys.platform == "win32":
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _still_there(lock: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _check_folder(path: Path) -> None:
    """Raise unless a file can be made in the folder of `path`, which may have to be made itself."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {above} is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: no permission in {above}")


def _named(mode: int) -> str:
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"))
    return next((name for test, name in kinds if test(mode)), "a device")


def _sync_folder(folder: Path) -> None:
    """Write the folder to disk, so that the new name survives a power cut, if the system can."""
    if os.name == "posix":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
