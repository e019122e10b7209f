"""Start of the package and of the commands that need a model alone, beside importing NumPy.

python -m benchmarks startup [--small]: CPU time of `import auxhash`, `auxhash --help`, and of
encode, search and inspect with a linear model of 128 bits for 320 features, of few points, so that
nothing but the start takes time.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from auxhash import HammingIndex, MACHash
from benchmarks.rows import Row, table

PEER = [sys.executable, "-c", "import numpy"]
AUXHASH = [sys.executable, "-c", "from auxhash.cli import main; main()"]
ENCODE = "encode model.safetensors points.npy -o codes.npy"
SEARCH = "search codes.index points.npy --model model.safetensors -k 3"
# What starts, and the aim: times of importing NumPy over ours.
STARTS = {
    "import auxhash": ([sys.executable, "-c", "import auxhash"], 1),
    "auxhash --help": ([*AUXHASH, "--help"], 2 / 3),
    "encode": ([*AUXHASH, *ENCODE.split()], 1 / 3),
    "search --model": ([*AUXHASH, *SEARCH.split()], 1 / 3),
    "inspect": ([*AUXHASH, "inspect", "model.safetensors"], 1 / 3),
}


def rows(runs: int) -> Iterator[Row]:
    """One row per start; its runs and those of the peer take turns."""
    with TemporaryDirectory() as folder, chdir(folder):
        _write_files()
        for name, (command, aim) in STARTS.items():
            for side in (command, PEER):
                _cpu_seconds(side)  # compiles modules, which does not count
            pairs = [(_cpu_seconds(command), _cpu_seconds(PEER)) for _ in range(runs)]
            ours, theirs = zip(*pairs, strict=True)
            yield Row(f"start of {name}, CPU time", ours, aim, "import numpy", theirs)


def _write_files() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 320))
    few = {"n_similar": 10, "n_dissimilar": 10, "max_iter": 1, "refine": None}
    hasher = MACHash(128, **few, random_state=0).fit(X, np.arange(200) % 4)
    hasher.save("model.safetensors")
    HammingIndex(128).add(hasher.codes_).save("codes.index")
    np.save("points.npy", X[:20])


def _cpu_seconds(command: Sequence[str]) -> float:
    """CPU time of a process, of all its threads, by the system and by itself."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cache = {"PYTHONPYCACHEPREFIX": str(Path.cwd() / "compiled")}
    done = subprocess.run(command, capture_output=True, text=True, env=kept | cache)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(small: bool = False) -> None:
    Console(width=150).print(table([*rows(1 if small else 7)]))
