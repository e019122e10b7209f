"""Writing a file whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the place of `path` only on success."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # mkstemp hides the file from everyone else
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut could leave the new name without content
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
