"""Data flows one way: a room imports only from the rooms above it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "auxhash"

ROOMS = [
    "words",
    "checks",
    "compute",
    "codes",
    "storage",
    "affinity",
    "losses",
    "zstep",
    "hashfunctions",
    "index",
    "stores",
    "metrics",
    "mac",
    "refine",
    "torch",
    "training",
    "hasher",
    "estimators",
    "neighborhash",
    "paper",
    "baselines",
    "models",
    "datasets",
    "shards",
    "dask",
    "experiments",
    "serve",
    "cli",
]


def imported_rooms(tree: ast.AST):
    """Names of the rooms a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "auxhash":
                names = parts[1:2] or [alias.name for alias in node.names]
                yield from (name for name in names if not name.startswith("__"))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "auxhash":
                    yield from parts[1:2]


def test_every_module_has_its_room():
    found = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert found - {"__init__"} == set(ROOMS)


def test_rooms_import_only_from_above():
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in imported_rooms(ast.parse(path.read_text())):
            assert ROOMS.index(other) <= ROOMS.index(room), f"{path.name} imports {other}"


def test_no_class_name_means_two_things():
    """Classes and type aliases, which are written in capitals and small letters, have one home."""
    homes: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if re.fullmatch(r"[A-Z]+[a-z][A-Za-z]*", name):
                    homes.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
