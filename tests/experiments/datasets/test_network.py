"""Data sets fetched over the network and embedded here, as users get them: minutes, so in soak."""

from html import escape
from pathlib import Path

import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.experiments import datasets
from tests import pages
from tests.conftest import SOAK

ROOT = Path(__file__).parents[3]
NAME = "wordnet-minilm-small"
IN_SOAK = pytest.mark.skipif(not SOAK, reason="minutes, and the network: make soak runs it")


@IN_SOAK
def test_a_small_form_is_fetched_embedded_and_searched(folder):
    pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    result = CliRunner().invoke(main, ["data", "get", NAME])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert sum(line.endswith(" right") for line in lines) == 6  # of WordNet's files and the model's
    assert "4500 base points" in lines[-1]
    assert CliRunner().invoke(main, ["data", "verify"]).exit_code == 0
    data = datasets.load(NAME)
    nearest = data.query.neighbors[300, :3]
    assert data.query.names[300] == "nougat"
    assert data.base.names[nearest].tolist() == ["butterscotch", "praline", "beach plum"]
    arguments = ["compare", NAME, "-m", "signs", "--html", str(folder / "page.html"), "--json"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert escape(data.query.names[0]) in (folder / "page.html").read_text("utf-8")


@IN_SOAK
def test_the_pages_that_show_descriptions_run_on_those_of_today(folder, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["data", "get", pages.DEBIAN.name])
    assert result.exit_code == 0, result.output
    compared = pages.need(pages.DEBIAN)
    for page in ("README.md", "docs/embeddings.md"):
        pages.run((ROOT / page).read_text("utf-8"), page, compared)
