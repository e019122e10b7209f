"""Stubs of the short names, in the wheel: type checkers cannot see the finder in `__init__`.

`auxhash.zstep.quad` is `auxhash.mac.zstep.quad` when a program runs. For type checkers the wheel
has a package of partial stubs, as PEP 561 has them: one line for each such module.
"""

import ast
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STUBS = "auxhash-stubs"


class ShortNames(BuildHookInterface):
    """Add the stubs to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs to a folder of their own, and have them packed."""
        if version == "editable":
            return
        self._written = tempfile.TemporaryDirectory(prefix=STUBS)
        folder = Path(self._written.name)
        (folder / "py.typed").write_text("partial\n")
        for stub, home in stubs(Path(self.root) / "src"):
            path = folder / stub
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"from {home} import *\n")
        build_data["force_include"][str(folder)] = STUBS

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if version != "editable":
            self._written.cleanup()


def stubs(source: Path) -> Iterator[tuple[str, str]]:
    """Yield the file of each stub, and the module that it stands for."""
    for short, home in short_names((source / "auxhash/__init__.py").read_text("utf-8")).items():
        if home == f"auxhash.{short}":
            continue
        place = source.joinpath(*home.split("."))
        if not place.is_dir():
            yield f"{short}.pyi", home
        for path in sorted(place.rglob("*.py")):
            inner = path.relative_to(place).with_suffix("")
            module = ".".join([home, *inner.parts]).removesuffix(".__init__")
            yield f"{short}/{inner.as_posix()}.pyi", module


def short_names(face: str) -> dict[str, str]:
    """Return `_MODULES`, as it stands in the text of the package's face."""
    for node in ast.parse(face).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="_MODULES")], value=value):
                found: dict[str, str] = ast.literal_eval(value)
                return found
    raise ValueError("auxhash/__init__.py has no _MODULES")
