"""The tests on each Python, with the newest dependencies and with the lowest that are stated.

Each cell is `make test-alone` in an environment of its own, which is removed afterwards. A cell
without a record is run; results are in docs/results/matrix.jsonl.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
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


def interpreter(version: str) -> str | None:
    """Return a Python of this version on the machine, or one that uv can get; None without one."""
    asked = [uv(), "python", "find", "--system", version]
    found = subprocess.run(asked, capture_output=True, text=True)
    if found.returncode:
        subprocess.run([uv(), "python", "install", version], capture_output=True)
        found = subprocess.run(asked, capture_output=True, text=True)
    return found.stdout.strip() or None


def uv() -> str:
    """Return the path of uv, which can resolve to the lowest versions."""
    path = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if path is None:
        raise SystemExit("uv is not installed: pip install uv, or make matrix")
    return path


def run(python: str, dependencies: str, part: str) -> Record:
    """Install and run one cell; return what came of it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="auxhash-matrix-") as folder:
        venv = Path(folder) / "venv"
        only_wheels = "--only-binary :all: --no-binary auxhash"
        resolution = f"--resolution {RESOLUTIONS[dependencies]} {only_wheels}"
        pip = f"{uv()} pip install --quiet --python {venv}/bin/python {resolution}"
        command = ["make", "test-alone", f"PYTHON={python}", f"VENV={venv}", f"PIP={pip}"]
        if PARTS[part]:
            command.append(f"PART={PARTS[part]}")
        environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        print(done.stdout[-3000:])
        listed = [uv(), "pip", "list", "--quiet", "--format=json", "--python", f"{venv}/bin/python"]
        packages = subprocess.run(listed, capture_output=True, text=True).stdout
        asked = [f"{venv}/bin/python", "-c", "import platform; print(platform.python_version())"]
        exact = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return record(
        (exact, dependencies, part),
        done.returncode,
        done.stdout,
        {each["name"]: each["version"] for each in json.loads(packages or "[]")},
        time.monotonic() - begun,
    )


def record(
    cell: tuple[str, str, str], status: int, output: str, packages: dict[str, str], seconds: float
) -> Record:
    """Return the record of a cell (Python, dependencies, part) from what its tests printed."""
    counts = {
        kind: int(number)
        for number, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", output)
    }
    python, dependencies, part = cell
    return {
        "auxhash": __version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "python": python,
        "dependencies": dependencies,
        "part": part,
        "status": status,
        **{kind: counts.get(kind, 0) for kind in ("passed", "failed", "skipped")},
        "errors": counts.get("error", 0) + counts.get("errors", 0),
        "seconds": round(seconds),
        "packages": {name: packages[name] for name in SHOWN if name in packages},
    }


def table(records: Iterable[Record]) -> str:
    """Return the table of the documentation: the last record of each cell."""
    last = {(each["python"], each["dependencies"], each["part"]): each for each in records}
    rows = []
    for (python, dependencies, part), each in sorted(last.items()):
        versions = ", ".join(f"{name} {version}" for name, version in each["packages"].items())
        bad = each["failed"] + each["errors"]
        result = f"{each['passed']:,} passed, {bad} failed, {each['skipped']} skipped"
        rows.append((python, each["machine"], dependencies, versions, part, result))
    head = ("Python", "machine", "dependencies", "of them", "tests", "result")
    return markdown(head, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--dependencies", nargs="+", default=[*RESOLUTIONS], choices=RESOLUTIONS)
    parser.add_argument("--part", default="all", choices=PARTS, help="which tests")
    parser.add_argument("--table", action="store_true", help="write the table of what there is")
    options = parser.parse_args(arguments)
    failed = False
    done = known(FILE, lambda each: (each["python"], each["dependencies"], each["part"]))
    for version in () if options.table else options.python:
        if (python := interpreter(version)) is None:
            print(f"Python {version}: not on this machine, and uv cannot get it", file=sys.stderr)
            continue
        for dependencies in options.dependencies:
            exact = subprocess.run([python, "-V"], capture_output=True, text=True).stdout.split()[1]
            if (exact, dependencies, options.part) not in done:
                result = run(python, dependencies, options.part)
                append(FILE, result)
                failed |= result["status"] != 0
    write_tables({TABLE: table(read(FILE))})
    if failed:
        raise SystemExit("some cells failed")


if __name__ == "__main__":
    main()
