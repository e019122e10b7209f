"""The README: one minute to read, and its example prints what stands below it."""

import re
from pathlib import Path

from tests import pages

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_example_prints_what_stands_below_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [(kind, code, printed)] = pages.examples(README)
    assert kind == "python"
    assert len([line for line in code.splitlines() if line]) <= 8
    assert printed
    pages.run(README, "README", compared=pages.need(pages.DEBIAN))


def test_it_is_read_in_a_minute():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert "make demo" in README
    assert "make test" in README
    assert not re.search(r"\.\d+ / \.\d+", README)
    aloud = re.sub(r"```.*?```|<!-- .*? -->.*?<!-- .*? -->", "", README, flags=re.DOTALL)
    aloud = re.sub(r"^(?:[#!|]|    ).*$|\]\([^)]*\)", "", aloud, flags=re.MULTILINE)
    assert len(aloud.split()) <= 190


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) >= 10
    for target in targets:
        assert (ROOT / target).exists(), target
