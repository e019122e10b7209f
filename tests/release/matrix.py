"""The tests on each Python, with the newest dependencies and with the lowest that are stated.

Each cell is `make test` with the newest dependencies, and `make test-alone`, which has no style and
no types, with the lowest or for a part, in an environment of its own, which is removed afterwards;
results are in docs/results/matrix.jsonl. A cell that passed is not run again on the same kind of
machine until the package or the bounds of its dependencies change. With CI=true, every cell is run.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Hashable, Iterable
from pathlib import Path

from auxhash.compute.version import __version__
from benchmarks.records import RESULTS, Record, append, known, markdown, read, write_tables

FILE = RESULTS / "matrix.jsonl"
TABLE = "matrix.md"
ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"newest": "highest", "lowest": "lowest-direct"}
FACE = ("test_face.py", "test_codes.py", "mac/test_losses.py", "compute/test_checks.py")
PARTS = {"all": "", "face": " ".join(f"tests/{name}" for name in FACE)}
SHOWN = ("numpy", "scipy", "numba", "scikit-learn")
MACHINE = f"{platform.system()} {platform.machine()}"


def sources() -> str:
    """Return a digest of what a cell tests: the package, and the bounds of its dependencies."""
    package = [path for path in (ROOT / "src").rglob("*.*") if path.parent.name != "__pycache__"]
    bounds = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    digest = hashlib.sha256(json.dumps(bounds).encode())
    for path in sorted(package):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def interpreter(version: str) -> str | None:
    """Return a Python of this version on the machine, or one that uv can get; None without one."""
    asked = [uv(), "python", "find", "--system", version]
    process = subprocess.run(asked, capture_output=True, text=True)
    if process.returncode:
        subprocess.run([uv(), "python", "install", version], capture_output=True)
        process = subprocess.run(asked, capture_output=True, text=True)
    return process.stdout.strip() or None


def uv() -> str:
    """Return the path of uv, which can resolve to the lowest versions."""
    path = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if path is None:
        raise SystemExit("uv is not installed: pip install uv, or make matrix")
    return path


def run(python: str, cell: Record) -> Record:
    """Install and run one cell; return what came of it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="auxhash-matrix-") as folder:
        venv = Path(folder) / "venv"
        only_wheels = "--only-binary :all: --no-binary auxhash"
        resolution = f"--resolution {RESOLUTIONS[cell['dependencies']]} {only_wheels}"
        pip = f"{uv()} pip install --quiet --python {venv}/bin/python {resolution}"
        part = PARTS[cell["part"]]
        # NumPy's types of older versions refuse what its code takes.
        target = "test" if cell["dependencies"] == "newest" and not part else "test-alone"
        command = ["make", target, f"PYTHON={python}", f"VENV={venv}"]
        command += [f"PIP={pip}", f"INSTALL={pip}"]
        if part:
            command.append(f"PART={part}")
        environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        print(done.stdout if done.returncode else done.stdout[-3000:], flush=True)
        listed = [uv(), "pip", "list", "--quiet", "--format=json", "--python", f"{venv}/bin/python"]
        packages = subprocess.run(listed, capture_output=True, text=True).stdout
    return record(
        cell,
        done.returncode,
        done.stdout,
        {each["name"]: each["version"] for each in json.loads(packages or "[]")},
        time.monotonic() - begun,
    )


def record(
    cell: Record, status: int, output: str, packages: dict[str, str], seconds: float
) -> Record:
    """Return the record of a cell from what its tests printed."""
    counts = {
        kind: int(number)
        for number, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", output)
    }
    return {
        "auxhash": __version__,
        **cell,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "status": status,
        **{kind: counts.get(kind, 0) for kind in ("passed", "failed", "skipped")},
        "errors": counts.get("error", 0) + counts.get("errors", 0),
        "seconds": round(seconds),
        "packages": {name: packages[name] for name in SHOWN if name in packages},
    }


def values(cell: Record) -> tuple[str, ...]:
    """Return what tells the cells of one version of the sources apart, in the table's order."""
    return tuple(cell[key] for key in ("python", "machine", "dependencies", "part"))


def around(cell: Record) -> tuple[str, ...]:
    """Return the minor version of Python, the machine and the dependencies of a cell."""
    python, machine, dependencies, _ = values(cell)
    return ".".join(python.split(".")[:2]), machine, dependencies


def passed(record: Record) -> Hashable:
    """Return the values and sources of a cell that passed; None for others, which run again."""
    return None if record["status"] else (*values(record), record["sources"])


def table(records: Iterable[Record]) -> str:
    """Return the table of the documentation: the last record of each cell.

    A part of the tests has no row where all were run with the same minor version of Python.
    """
    rows, last = [], {values(each): each for each in records}
    complete = {around(each) for each in last.values() if each["part"] == "all"}
    for named, each in sorted(last.items()):
        if each["part"] != "all" and around(each) in complete:
            continue
        versions = ", ".join(f"{name} {version}" for name, version in each["packages"].items())
        bad = each["failed"] + each["errors"]
        result = f"{each['passed']:,} passed, {bad} failed, {each['skipped']} skipped"
        if each["status"] and not bad:
            result += ", stopped"
        rows.append((*named, versions, each["date"], result))
    head = ("Python", "machine", "dependencies", "tests", "versions", "date", "result")
    return markdown(head, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--python", nargs="+", default=PYTHONS, help="versions, or paths of them")
    parser.add_argument("--dependencies", nargs="+", default=[*RESOLUTIONS], choices=RESOLUTIONS)
    parser.add_argument("--part", default="all", choices=PARTS, help="which tests")
    parser.add_argument("--table", action="store_true", help="write the table of what there is")
    options = parser.parse_args(arguments)
    ci = os.environ.get("CI") == "true"
    done = set() if ci else known(FILE, passed)
    failed = False
    for version in () if options.table else options.python:
        if (python := interpreter(version)) is None:
            print(f"Python {version}: none on the PATH, and uv cannot get it", file=sys.stderr)
            failed |= ci
            continue
        exact = subprocess.run([python, "-V"], capture_output=True, text=True).stdout.split()[1]
        for dependencies in options.dependencies:
            cell = {
                "sources": sources(),
                "machine": MACHINE,
                "python": exact,
                "dependencies": dependencies,
                "part": options.part,
            }
            if (*values(cell), cell["sources"]) not in done:
                result = run(python, cell)
                append(FILE, result)
                write_tables({TABLE: table(read(FILE))})  # the next cell compares them
                failed |= result["status"] != 0
    write_tables({TABLE: table(read(FILE))})
    if failed:
        raise SystemExit("some cells failed, or could not be run")


if __name__ == "__main__":
    main()
