"""Every script of examples/ prints, at a small size, what the documentation shows below it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/examples.md").read_text("utf-8")
RUNS = re.findall(r"^\$ python examples/(\w+\.py) ?(.*)\n((?:.+\n)+?)```$", PAGE, re.MULTILINE)


def run(name, arguments, folder):
    done = finished(name, arguments, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def finished(name, arguments, folder):
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, ROOT / "examples" / name, *arguments.split()]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("name", "arguments", "printed"), RUNS, ids=[name for name, *_ in RUNS])
def test_an_example(tmp_path, name, arguments, printed):
    output = run(name, arguments, tmp_path)
    pages.check(name, printed, output)
    if name == "the_paper.py":  # its claim
        losses = re.search(r"two-step: L\(h\) (\d+),.*\nMAC: L\(h\) (\d+),", output)
        assert int(losses[2]) < int(losses[1])


def test_packages_of_debian_are_found_whatever_the_archive_holds(tmp_path):
    pages.need(pages.DEBIAN)
    first, query, *nearest = run("package_descriptions.py", "--steps 1", tmp_path).splitlines()
    number, text = first.split(" ", 1)
    assert 4_400 < int(number) <= 4_500
    assert text.startswith("descriptions: ")
    assert query.startswith("python3-")
    assert len(nearest) == 3


def test_a_package_that_is_not_there_is_named(tmp_path):
    done = finished("package_descriptions.py", "--installed --query nothing-so-called", tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("names begins with 'nothing-so-called'")


def test_every_example_is_shown():
    assert [name for name, *_ in RUNS] == [*dict.fromkeys(re.findall(r"\[(\w+\.py)\]", PAGE))]
    assert {name for name, *_ in RUNS} == {path.name for path in (ROOT / "examples").glob("*.py")}
