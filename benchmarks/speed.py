"""Every speed that README and documentation state, each beside its peer in one run: make bench.

python -m benchmarks speed [--quick] [--results FOLDER]

Prints one table with a verdict on every aim. The full form takes about seven minutes and writes the
rows, with the machine's description and the commit, into docs/results/bench, one file per kind of
machine; `python -m benchmarks.stated` makes the tables of README and docs/speed.md of them. The
quick form takes less than three minutes: smaller sizes, for which the aims were not set, and its
rows are stored only where --results says so.
"""

import argparse
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_info

from auxhash.compute import threads
from benchmarks import core, encoding, metrics, search, startup, tablescan
from benchmarks.rows import Row, table, turns

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "bench"
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "faiss-cpu")


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure, print the table, and store the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed")
    parser.add_argument("--quick", action="store_true", help="less than three minutes")
    parser.add_argument("--results", type=Path, help="folder for the rows")
    asked = parser.parse_args(list(options))
    form = "small" if small else "quick" if asked.quick else "full"
    about = {"form": form, "commit": commit(), "machine": machine(), "rates": rates()}
    rows = list(measured(form))
    console = Console(width=170)
    console.print(table(rows, title=title(about)))
    missed = sum(row.met is False for row in rows)
    console.print(f"{missed} of {sum(row.met is not None for row in rows)} aims missed.")
    if form != "full":
        console.print("The aims are for the full sizes: without --quick.")
    folder = asked.results or (RESULTS if form == "full" else None)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{slug(about['machine'])}.json"
        kept = about | {"rows": [asdict(row) for row in rows]}
        path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        console.print(f"Stored as {path.name}.")


def measured(form: str) -> Iterator[Row]:
    """All rows of a form: small, quick or full."""
    of_core = {"small": core.SMALL, "quick": core.QUICK, "full": core.FULL}[form]
    codes, runs = {"small": (2_000, 1), "quick": (200_000, 3), "full": (1_000_000, 7)}[form]
    return chain(
        core.rows(of_core),
        search.rows(codes, runs),
        tablescan.rows(codes, runs),
        metrics.rows(codes, runs),
        encoding.rows(codes // 10, 3 * runs),  # short ones, and their ratio is near its aim
        startup.rows(runs),
    )


def read(folder: Path = RESULTS) -> list[tuple[dict[str, Any], list[Row]]]:
    """The stored results of every machine: what it is, and the rows."""
    results = []
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text("utf-8"))
        rows = [Row(**_tuples(row)) for row in kept.pop("rows")]
        results.append((kept, rows))
    return results


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}


def title(run: dict[str, Any]) -> str:
    """One line on the machine, the form and the commit."""
    is_ = run["machine"]
    about = f"{is_['architecture']}, {is_['processor']}, {is_['cores']} cores"
    return f"{about}; {run['form']} form, {run['commit']}"


def slug(machine: dict[str, Any]) -> str:
    """The name of a machine's file."""
    words = f"{machine['architecture']} {machine['processor']} {machine['cores']} cores"
    return re.sub(r"[^a-z0-9_]+", "-", words.lower()).strip("-")


def machine() -> dict[str, Any]:
    """Facts that decide about speed: processor, cores, libraries, and how busy it was before."""
    blas = {f"{each['internal_api']} {each['version']}" for each in _blas()}
    return {
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": threads.cores(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "blas": sorted(blas),
    }


def _blas() -> list[dict[str, Any]]:
    return [each for each in threadpool_info() if each["user_api"] == "blas"]


def _processor() -> str:
    """The processor's name, where the system tells it; else what the newest BLAS takes it for."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = named[1] if named else platform.processor()
    kinds = [
        ([int(part) for part in re.findall(r"\d+", each["version"])], each["architecture"].lower())
        for each in _blas()
        if each.get("version") and each.get("architecture")
    ]
    core_type = max(kinds, default=([], ""))[1]
    return re.sub(r"\((R|TM)\)", "", name).strip() or core_type or "unknown processor"


def rates() -> dict[str, float]:
    """Rates of one core: the floors of everything that is measured here."""
    rng = np.random.default_rng(0)
    A, V = rng.normal(size=(1024, 1024)), np.ones(1 << 25)
    place = rng.integers(0, len(V), 1 << 20)
    with threads.one_blas_thread():
        product, read_, gather = (
            median(seconds)
            for seconds in turns(lambda: A @ A, lambda: V.sum(), lambda: V[place], runs=5)
        )
    return {
        "matrix product, GFlop/s": round(2 * len(A) ** 3 / product / 1e9, 1),
        "memory in order, GB/s": round(V.nbytes / read_ / 1e9, 1),
        "memory at random, ns per number": round(gather / len(place) * 1e9, 1),
    }


def commit() -> str:
    """The commit that is measured, and whether files differ from it; without Git, unknown."""
    try:
        name, changed = (
            subprocess.run(
                ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown commit"
    return f"{name} with changes" if changed else name
