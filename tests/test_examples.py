"""Every script of examples/ does, at a small size, what its user wanted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
RUNS = {  # arguments, and what is printed
    "parquet_embeddings.py": ("--steps 10 --linear", r"by outputs: 0\.7\d.*\nby vectors: 1\.00"),
    "labelled_pictures.py": ("--steps 20", r"re-ranked by cosine distance, of 500 codes"),
    "items_service.py": ("--items 200", r"query 0: item-\d+ \(pen\).*\n(.*\n)+deleted: 2\n"),
    "the_paper.py": (
        "--points 200 --bits 4",
        r"two-step: L\(h\) (?P<two_step>\d+),.*\nMAC: L\(h\) (?P<mac>\d+),",
    ),
}


def run(name, arguments, folder):
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, FOLDER / name, *arguments.split()]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py")))
def test_an_example(tmp_path, name):
    arguments, expected = RUNS[name]
    found = re.search(expected, printed := run(name, arguments, tmp_path))
    assert found, printed
    if name == "the_paper.py":  # its claim
        assert float(found["mac"]) < float(found["two_step"])
