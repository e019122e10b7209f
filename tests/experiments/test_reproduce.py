"""reproduce, from the command to the page."""

import inspect
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.figures import EVERY, FIGURES, maps, sketch
from auxhash.experiments.reproduce import Reproduction
from auxhash.experiments.scales import PAPER, SCALES, TINY
from auxhash.learn.paper import cut, maccut
from auxhash.mac import presets
from auxhash.mac.zstep import Cut
from tests.conftest import SOAK

NAMES = [
    "free-codes",
    "run-time",
    "sup-comparison",
    "sup-cosine",
    "sup-nestederr",
    "sup-nestederr-freecodes",
    "unsup-comparison",
    "unsup-cosine",
    "unsup-entropy",
    "unsup-free",
    "unsup-nestederr",
    "unsup-nestederr1",
]
REMARKS = ["maps"]  # figures of what the paper only remarks on
ONE_OF_A_KIND = (
    "free-codes",
    "run-time",
    "sup-comparison",
    "sup-nestederr",
    "unsup-entropy",
    "unsup-free",
)


def reproduce(folder, *arguments, ok=True):
    common = ["--scale", "tiny", "--folder", str(folder), "--jobs", "1"]
    result = CliRunner().invoke(main, ["reproduce", *arguments, *common])
    assert (result.exit_code == 0) == ok, result.output
    return result.output


def never(*_):
    raise AssertionError("a report must not train")


@pytest.fixture
def trained(monkeypatch):
    """The trainings from here on."""
    fitted, train = [], runs.train
    monkeypatch.setattr(
        runs, "train", lambda hasher, *rest: fitted.append(hasher) or train(hasher, *rest)
    )
    return fitted


def test_both_forms_of_the_h_step(trained, tmp_path):
    """The paper's by default; and that of the runs from before there was a choice."""
    part = ("run-time", "--method", "MACcut", "--seeds", "1")
    numbers = tmp_path / "numbers.json"
    reproduce(tmp_path, *part)
    reproduce(
        tmp_path, *part, "--h-step", "monotone", "--iterate", "lowest", "--numbers", str(numbers)
    )
    forms = [(hasher.h_step, hasher.iterate) for hasher in trained]
    assert set(forms) == {("plain", "last"), ("monotone", "lowest")}
    assert forms.count(("plain", "last")) == len(forms) / 2
    content = json.loads(numbers.read_text())
    assert (content["h_step"], content["iterate"]) == ("monotone", "lowest")
    assert "--h-step monotone --iterate lowest --seeds 1" in content["command"]
    assert "a bit keeps its old classifier" in str(content["protocol"])
    for ending, words in (("", "its last iterate"), ("-monotone-lowest", "the lowest L(h)")):
        assert words in (tmp_path / f"run-time-tiny{ending}.html").read_text()


def test_the_figures_of_the_paper():
    assert sorted(FIGURES) == NAMES
    output = CliRunner().invoke(main, ["reproduce", "--list"]).output
    assert list(EVERY) == [*FIGURES, *REMARKS]
    assert all(name in output for name in EVERY)
    assert [one.number for one in FIGURES.values()] == [
        *("Fig. 2", "Fig. 3", "Fig. 4", "Sec. 4.3", "Fig. 5", "Fig. 6"),
        *("Fig. 7", "Fig. 8", "Fig. 9", "Fig. 10", "Fig. 11", "Fig. 12"),
    ]
    assert all(one.number in output for one in EVERY.values())


def test_one_default_of_the_order():
    [option] = [one for one in main.commands["reproduce"].params if one.name == "order"]
    named = {inspect.signature(make).parameters["order"].default for make in (maccut, cut)}
    assert {option.default, PAPER.order, TINY.order, presets.ORDER, Cut().order} == named


OWN = """
from auxhash.baselines import LSH
from auxhash import MACHash

lsh = LSH()


def mac():
    return MACHash(refine=None, max_iter=2)
"""


@pytest.mark.parametrize("name", ["sup-comparison", "sup-nestederr", "unsup-entropy"])
def test_own_methods_stand_in_a_figure(name, tmp_path, monkeypatch, trained):
    monkeypatch.chdir(tmp_path)
    module = f"own_{name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(OWN)
    part = ["--method", "MACcut", "--seeds", "1", "--numbers", "n.json"]
    own = f"{module}:lsh", f"{module}:mac"
    reproduce(tmp_path, name, *part, "--own", own[0], "--own", own[1])
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert {result["method"] for result in numbers["results"]} == {"MACcut", *own}
    assert numbers["command"].endswith(f" --own {own[0]} --own {own[1]}")
    page = (tmp_path / f"{name}-tiny.html").read_text()
    assert f"<title>{own[1]}</title>" in page
    pairs = {(hasher.n_similar, hasher.n_dissimilar) for hasher in trained if "mu" in vars(hasher)}
    assert len(pairs) == 1
    assert "free-codes has no parts" in reproduce(tmp_path, "free-codes", "--own", own[0], ok=False)
    wrong = reproduce(tmp_path, name, "--own", f"{module}:OWN", ok=False)
    assert f"module {module} has no function 'OWN'" in wrong


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder of runs for all figures: what one has trained, others read."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.parametrize("name", [*NAMES, *REMARKS])
def test_a_figure_from_the_command_to_the_page(name, shared, tmp_path, monkeypatch):
    monkeypatch.setattr("auxhash.learn.regression.N_FIRST_STEPS", 100)  # of the networks of maps
    numbers = tmp_path / "docs" / "numbers.json"
    seeds = [] if name == "run-time" else ["--seeds", "1"]  # one figure is enough for the spread
    output = reproduce(shared, name, *seeds, "--numbers", str(numbers))
    assert "failed" not in output
    assert f"{name}-tiny.html" in output.replace("\n", "")
    text = (shared / f"{name}-tiny.html").read_text()
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert page.find("body/main/header/h1").text == f"{EVERY[name].number}: {EVERY[name].title}"
    head = "".join(page.find("body/main/header/p").itertext())
    assert "Scale: tiny: 50 to 60 training points, at most 200 searched, " in head
    assert "Scale: tiny" in output
    [verdicts_at] = [at for at, head in enumerate(page.iter("h2")) if "What the paper" in head.text]
    assert verdicts_at >= 1  # the curves come first
    assert not re.search(r"""https?:|["'(]//|@import|<script|<link""", text)
    assert "are missing" not in text
    assert page.find(".//svg[@class='plot']") is not None
    assert len(text) < 1_000_000
    verdicts = page.findall(".//table[@class='verdicts']/tbody/tr")
    content = json.loads(numbers.read_text())
    assert len(verdicts) == len(content["verdicts"]) >= 3
    assert {v["verdict"] for v in content["verdicts"]} <= {"not judged", "not tested"}
    assert {row.get("class") for row in verdicts} == {"untested"}
    assert page.find("body/main/p[@class='notice']").text == content["notes"][0]
    assert "proves nothing" in content["notes"][0]
    heads = [head.text for head in page.iter("h2")]
    assert not any(re.search("CIFAR|MNIST|SIFT", head) and "digits" not in head for head in heads)
    asked = ["auxhash reproduce", name, "--scale tiny --order random --h-step plain --iterate last"]
    asked += seeds
    assert content["command"] == " ".join(asked)
    assert (content["order"], content["h_step"], content["iterate"]) == ("random", "plain", "last")
    assert content["results"]
    assert content["protocol"]
    assert "blocks in random order" in text
    if SOAK or name in ONE_OF_A_KIND:
        reproduce(shared, name, *seeds, "--order", "fixed", "--numbers", str(numbers))
        fixed = json.loads(numbers.read_text())
        assert fixed["order"] == "fixed"
        assert [v["claim"] for v in fixed["verdicts"]] == [v["claim"] for v in content["verdicts"]]
        other = (shared / f"{name}-tiny-fixed.html").read_text()
        assert "blocks in one order" in other
        assert "are missing" not in other
    # The report only reads: with every way to train barred, it says the same again.
    monkeypatch.setattr(runs, "train", never)
    monkeypatch.setattr(sketch.Draw, "run", never)
    monkeypatch.setattr(maps.MapRun, "run", never)
    again = ["--report-only", "--output", str(tmp_path / "again.html")]
    reproduce(shared, name, *seeds, *again)
    assert (tmp_path / "again.html").read_text() == text


def test_only_the_tiny_scale_judges_nothing(tmp_path):
    reproduce(tmp_path, "free-codes", "--run-only")
    sizes = TINY, replace(TINY, proves_nothing="")
    first, second = (
        Reproduction(FIGURES["free-codes"], size, Cells(tmp_path)).report(tmp_path / "page.html")
        for size in sizes
    )
    assert {verdict.word for verdict in first.verdicts} == {"not judged"}
    assert {verdict.word for verdict in second.verdicts} == {"held", "not held"}
    assert [v.holds for v in first.verdicts] == [v.holds for v in second.verdicts]
    assert (first.notes, second.notes) == ([TINY.proves_nothing], ())
    assert not any(scale.proves_nothing for scale in SCALES.values() if scale is not TINY)


def test_panels_name_the_data_that_was_used():
    names = {
        size.name: [g.name for g in FIGURES["sup-comparison"].groups(size)]
        for size in (PAPER, TINY)
    }
    assert names["paper"] == ["CIFAR", "Infinite MNIST"]
    assert names["tiny"] == [
        "digits in the place of CIFAR",
        "digits in the place of Infinite MNIST",
    ]


def test_an_interrupted_run_goes_on(tmp_path, trained):
    reproduce(tmp_path, "run-time", "--run-only")
    count = len(trained)
    assert count == len(FIGURES["run-time"].jobs(TINY))
    reproduce(tmp_path, "run-time")
    assert len(trained) == count
    cells = sorted(tmp_path.glob("*.npz"))
    assert len(cells) == count
    cells[0].unlink()
    reproduce(tmp_path, "run-time")
    assert len(trained) == count + 1
    assert sorted(tmp_path.glob("*.npz")) == cells
    assert not list(tmp_path.glob(".*"))  # nothing half written is left


def test_one_run_serves_several_figures(tmp_path, trained):
    reproduce(tmp_path, "sup-nestederr-freecodes", "--run-only", "--seeds", "1")
    count = len(trained)
    reproduce(tmp_path, "run-time", "--run-only", "--seeds", "1")
    # MACquad with both hash functions, MACcut with mu_1 by search, and LIBSVM.
    assert len(trained) - count == 2 + 1 + 1


def test_a_run_that_fails_stops_nothing(tmp_path, monkeypatch):
    train = runs.train

    def sometimes(hasher, *rest):
        if hasher.mu == pytest.approx(0.001):
            raise RuntimeError("no [luck]")
        return train(hasher, *rest)

    monkeypatch.setattr(runs, "train", sometimes)
    output = reproduce(tmp_path, "run-time", "--seeds", "1")
    assert output.count("RuntimeError: no [luck]") == 2
    text = (tmp_path / "run-time-tiny.html").read_text()
    assert "2 of 7 runs are missing" in text
    assert "MACquad, ksh, rbf, 6 bits, seed 0" in text


def test_without_any_run_every_claim_is_untested(tmp_path):
    reproduce(tmp_path, "sup-nestederr", "--report-only")
    text = (tmp_path / "sup-nestederr-tiny.html").read_text()
    assert text.count("not tested") >= 10
    assert "</span> held" not in text


def test_some_bits_and_methods_of_a_figure(tmp_path, trained):
    numbers = tmp_path / "numbers.json"
    part = ["--bits", "3", "--without", "MACquad", "--without", "KSH", "--seeds", "1"]
    reproduce(tmp_path, "sup-nestederr", *part, "--numbers", str(numbers))
    assert {hasher.n_bits for hasher in trained} == {3}
    assert {round(hasher.mu, 6) for hasher in trained} == {0.03}  # MACcut's
    content = json.loads(numbers.read_text())
    assert {result["method"] for result in content["results"]} == {"cut", "MACcut"}
    assert content["command"].endswith("--seeds 1 --bits 3 --without MACquad --without KSH")
    assert "Run with one seed in place of 2." in content["notes"]
    text = (tmp_path / "sup-nestederr-tiny.html").read_text()
    assert "Run with one seed in place of 2." in text
    assert "are missing" not in text
    count = len(trained)
    reproduce(tmp_path, "sup-nestederr", "-m", "cut", "--bits", "3", "--seeds", "1")
    assert len(trained) == count


def test_one_data_set_of_a_figure(tmp_path):
    assert "it has digits" in reproduce(tmp_path, "sup-nestederr", "--data", "mnist", ok=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sup-nestedeer"], "did you mean 'sup-nestederr'"),
        (["all", "--output", "x.html"], "for one figure"),
        (["run-time", "--run-only", "--report-only"], "writes no page"),
        (["all", "--bits", "6"], "for one figure"),
        (["run-time", "--bits", "7"], "run-time has no bits 7; it has 6, 3"),
        (["run-time", "--method", "ITQ"], "run-time has no method ITQ"),
        (["run-time", "--without", "ITQ"], "run-time has no method ITQ"),
        (["run-time", "-m", "cut", "--without", "cut"], "nothing of run-time is left"),
        (["free-codes", "--bits", "6"], "free-codes has no parts: leave out --bits 6"),
    ],
)
def test_arguments_that_cannot_be(arguments, message, tmp_path):
    assert message in reproduce(tmp_path, *arguments, ok=False)
