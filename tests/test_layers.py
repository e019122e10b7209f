"""The structure of the package: rooms import one way only, and the listing stays short."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent / "src" / "auxhash"

# A room imports only from itself and from rooms above it in this list.
ROOMS = [
    "compute",
    "codes",
    "files",
    "mac",
    "search",
    "model",
    "learn",
    "stores",
    "dask",
    "serve",
    "experiments",
    "cli",
]
MODULE_NAME = re.compile(r"auxhash(\.\w+)+\.?")  # a string that names a module, or begins with one
# Rooms that may import fewer than all rooms above them.
ONLY = {
    "mac": {"compute", "codes"},  # the paper: nothing but what computes
    "search": {"compute", "codes", "files"},  # needs no method of learning
}
# `from auxhash.dask import infinite_mnist` is documented: the data set of infinite digits on a
# cluster, which lives with the other data sets. It is looked up only when somebody asks for it.
BELOW = {("auxhash.dask", "auxhash.experiments.datasets.dask_mnist")}
MAX_ENTRIES = 14
# Folders of tests that are of no room: kernels of several rooms, files, and what runs the package.
OF_NO_ROOM = {"gpu", "model/fixtures", "probes", "release"}


def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        trees[name.removesuffix(".__init__")] = ast.parse(path.read_text())
    return trees


MODULES = modules()


def imported(tree: ast.Module) -> set[str]:
    """Modules of the package that a module imports, anywhere in it; its face by its own name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("auxhash"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full in MODULES and node.module != "auxhash"
                names.add(full if is_module else node.module)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names if alias.name.startswith("auxhash"))
    return names


def by_strings(tree: ast.Module) -> set[str]:
    """Modules of the package that strings name, as for `import_module`; of some, the beginning."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    names = [text for text in texts if isinstance(text, str) and MODULE_NAME.fullmatch(text)]
    return {name.removesuffix(".") for name in names if room(name) in ROOMS}


def needed(module: str) -> set[str]:
    """Modules of the package that a module imports, by statements and by strings, but for BELOW."""
    tree = MODULES[module]
    others = imported(tree) | by_strings(tree)
    return {other for other in others if (module, other) not in BELOW}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_the_listing_explains_the_program():
    entries = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert {name.removesuffix(".py") for name in entries} == {*ROOMS, "__init__", "py.typed"}
    assert len(entries) <= MAX_ENTRIES


def folders(root: Path, pattern: str) -> set[str]:
    """Return the folders that hold files of a pattern, but for the root."""
    inside = {path.parent.relative_to(root) for path in root.rglob(pattern)}
    return {path.as_posix() for path in inside if path.parts and "__pycache__" not in path.parts}


def test_tests_mirror_the_rooms():
    assert folders(TESTS, "*.*") == folders(ROOT, "__init__.py") | OF_NO_ROOM


def test_rooms_import_one_way_only():
    for module in MODULES:
        own = room(module)
        if not own:
            continue
        allowed = ONLY.get(own, set(ROOMS[: ROOMS.index(own)])) | {own}
        for other in needed(module):
            assert room(other), f"{module} imports the package's face"
            assert room(other) in allowed, f"{module} imports {other}"


def test_only_the_command_line_imports_experiments():
    """Nothing uses what reproduces the paper; the package's face names parts of it."""
    for module in MODULES:
        if room(module) not in ("", "experiments", "cli"):
            assert not [name for name in needed(module) if room(name) == "experiments"], module


def test_imports_by_strings_are_seen():
    code = """
import_module("auxhash.experiments.datasets.dask_mnist")
import_module(f"auxhash.stores.{module}")
raise ImportError("auxhash.torch needs PyTorch")
MESSAGES = "auxhash.messages"
"""
    expected = {"auxhash.experiments.datasets.dask_mnist", "auxhash.stores"}
    assert by_strings(ast.parse(code)) == expected
    for module, other in BELOW:  # exceptions that are no longer needed go
        assert other in by_strings(MODULES[module])


def test_no_module_imports_itself_by_a_circle():
    """The first to be imported decides, where imports at the top of files form a circle."""
    graph = {
        module: {
            name
            for node in tree.body
            for name in imported(ast.Module([node], []))
            if not isinstance(node, ast.If) and name in MODULES and name != module
        }
        for module, tree in MODULES.items()
    }
    # A package's face imports its files; that a file imports its package is a circle.
    while leaves := {module for module, others in graph.items() if not others & graph.keys()}:
        graph = {module: others for module, others in graph.items() if module not in leaves}
    assert not graph, sorted(graph)


def test_no_class_name_means_two_things():
    """Classes and type aliases, which are written in capitals and small letters, have one home."""
    homes: dict[str, set[str]] = {}
    for module, tree in MODULES.items():
        for node in tree.body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if re.fullmatch(r"[A-Z]+[a-z][A-Za-z]*", name):
                    homes.setdefault(name, set()).add(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_nothing_hands_threads_on():
    """A private function reads them from the context, which a worker of Dask has its own of."""
    wrong = [
        f"{module}: {node.name}"
        for module, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        if re.match("_[^_]", node.name) and room(module) != "dask"
        if "n_jobs" in {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    ]
    assert wrong == []
