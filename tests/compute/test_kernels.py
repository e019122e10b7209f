import copy
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from auxhash import codes
from auxhash.compute import kernels
from auxhash.search.index import scan
from tests.conftest import SOAK
from tests.programs import run_python

ROOT = Path(kernels.__file__).parents[1]
CALLED = (
    "from auxhash.compute.kernels import kernel\nSTEP = {step}\n\n"
    "@kernel\ndef inner(x):\n    return {body}\n"
)
CALLING = (
    "from auxhash.compute.kernels import kernel\nfrom auxhash.called import inner, STEP\n\n"
    "@kernel\ndef middle(x):\n    return inner(x) + STEP\n\n"
    "@kernel\ndef outer(x):\n    return middle(x)\n"
)


def answer(package):
    code = (
        "from auxhash.calling import outer; print(outer(1.0), len(outer.compiled.stats.cache_hits))"
    )
    value, hits = run_python(code, PYTHONPATH=str(package.parent)).split()
    return float(value), int(hits)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same name, with a kernel that calls one of another file.

    Python's own cache takes a file of the same size and second for unchanged; there is none.
    """
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    made = tmp_path / "auxhash"
    made.mkdir()
    (made / "compute").mkdir()
    (made / "__init__.py").write_text("")
    for name in ("clock", "kernels"):
        (made / f"compute/{name}.py").write_text((ROOT / f"compute/{name}.py").read_text())
    (made / "calling.py").write_text(CALLING)
    (made / "called.py").write_text(CALLED.format(step=10, body="x"))
    return made


def test_a_type_that_has_moved_is_compiled_anew(package):
    """The cache names the types of arguments by their modules."""
    both = (
        "from typing import NamedTuple\n\n\nclass Both(NamedTuple):\n    a: float\n    b: float\n"
    )
    kernel = (
        "from auxhash.compute.kernels import kernel\nfrom auxhash.{home} import Both\n\n"
        "@kernel\ndef added(x):\n    return x.a + x.b\n\n"
        "def run():\n    return added(Both(1.0, 2.0)), len(added.compiled.stats.cache_hits)\n"
    )
    code = "from auxhash.calling import run; print(*run())"

    def answered():
        return run_python(code, PYTHONPATH=str(package.parent)).split()

    for home, other in (("old", "new"), ("new", "old")):
        (package / f"{home}.py").write_text(both)
        (package / f"{other}.py").unlink(missing_ok=True)
        (package / "calling.py").write_text(kernel.format(home=home))
        assert answered() == ["3.0", "0"]
        if SOAK:
            assert answered() == ["3.0", "1"]


def test_a_kernel_notices_changes_in_the_files_it_calls(package):
    assert answer(package) == (11, 0)
    assert answer(package) == (11, 1)
    (package / "called.py").write_text(CALLED.format(step=10, body="x * 2"))
    assert answer(package) == (12, 0)
    (package / "called.py").write_text(CALLED.format(step=20, body="x * 2"))
    assert answer(package) == (22, 0)
    if SOAK:
        assert answer(package) == (22, 1)


UNWRITTEN = (
    "from auxhash.calling import inner, outer\n"
    "print(outer(1.0), inner(2.0), len(outer.compiled.stats.cache_hits))"
)


def unwritable(package):
    """No folder for kernels, not even for root: a file stands where each would be."""
    (package / "__pycache__").write_text("")
    nowhere = str(package / "__pycache__" / "below")
    return {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere}


@pytest.mark.parametrize("named", [True, False], ids=["NUMBA_CACHE_DIR", "home"])
def test_where_nothing_can_be_written_kernels_are_compiled_in_memory(package, named):
    environment = {**os.environ, **unwritable(package), "PYTHONPATH": str(package.parent)}
    if not named:
        del environment["NUMBA_CACHE_DIR"]
    command = [sys.executable, "-B", "-c", UNWRITTEN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["11.0", "2.0", "0"], done.stderr
    [said] = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert "kernels are not kept, and every process compiles them anew: no folder" in said


def test_a_full_disk_stops_no_kernel(package):
    code = (
        "import errno, os, builtins\n"
        "def full(name, mode='r', *more, _open=open, **named):\n"
        "    if '.nb' in str(name) and 'w' in mode:\n"
        "        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(name))\n"
        "    return _open(name, mode, *more, **named)\n"
        "builtins.open = full\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", code + UNWRITTEN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["11.0", "2.0", "0"], done.stderr
    [said] = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert "No space left on device" in said


def every_kernel():
    for path in sorted(ROOT.rglob("*.py")):
        if "kernel" in path.read_text() and path.stem != "kernels":
            parts = path.relative_to(ROOT.parent).with_suffix("").parts
            module: ModuleType = import_module(".".join(parts))
            for value in vars(module).values():
                if isinstance(value, kernels.Kernel) and value.__module__ == module.__name__:
                    yield value


def test_every_kernel_is_defined_after_what_it_calls():
    """Or changes of that would not be noticed."""
    result = list(every_kernel())
    assert len(result) > 30
    for each in result:
        assert each.stamp[1] == kernels.dependencies(each.py_func), each.__name__


def test_kernels_are_compiled_through_this_room_alone():
    for path in ROOT.rglob("*.py"):
        if path.stem != "kernels":
            text = path.read_text()
            assert "njit" not in text, path.name


def test_a_kernel_is_a_function_by_its_name():
    measure = scan.measure
    assert pickle.loads(pickle.dumps(measure)) is measure
    assert copy.deepcopy([measure])[0] is measure
    assert measure.__name__ == "measure"
    assert "one query" in measure.__doc__
    with pytest.raises(TypeError, match="popcount is for compiled kernels only"):
        codes.popcount(3)


def test_a_file_that_changes_before_the_first_call_does_not_get_the_old_code(package):
    """Its stamp is that of the file which was imported, not of the file at the first call."""
    code = (
        "from auxhash.calling import outer; from pathlib import Path; import auxhash.calling as c;"
        "file = Path(c.__file__); file.write_text(file.read_text().replace('+ STEP', '-  STEP'));"
        "print(outer(1.0), 0)"
    )
    assert run_python(code, PYTHONPATH=str(package.parent)).split()[0] == "11.0"
    assert answer(package) == (-9, 0)


def test_importing_kernels_does_not_import_numba():
    names = "auxhash.search.index, auxhash.search.metrics, auxhash.mac.losses, auxhash.mac.affinity"
    code = f"import sys, {names}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    assert run_python(code).strip() == "[]"
