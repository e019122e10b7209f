"""Numbers that are written and read back tell what the records told."""

import json
from dataclasses import replace

import pytest

from auxhash.experiments import numbers
from auxhash.experiments.claims import judge
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.groups import Record
from tests.experiments.made import history
from tests.test_docs import script

CURVE = [(r / 16, 0.9 - 0.05 * r) for r in range(17)]


def made(method, loss, seed=0, bits=16, kind="linear", **more):
    """A record with all that a run has."""
    steps = history(
        2.0,
        1.5,
        loss,
        seconds=[3.0, 1.0, 1.25],
        violations=7,
        score=[0.5, 0.4, 0.6],
        accepted=[True, False, True],
        skipped=[0, 2, 0],
        z_seconds=[2.5, 0.5, 0.75],
        h_seconds=[0.25, 0.25, 0.25],
    )
    return Record(
        "KSH",
        method,
        kind,
        bits,
        seed,
        loss,
        {10: 1 / 3 + 1 / loss, 20: 0.25},
        CURVE,
        0.125,
        {"base": 7.5, "query": 6.5},
        steps if method.startswith("MAC") else [],
        6.5,
        10_000,
        **more,
    )


def stored(records):
    """Through a file and back."""
    return numbers.records(json.loads(json.dumps(numbers.entries(records))))


def test_records_come_back():
    both = [made("MACcut", 1.25, seed=0), made("MACcut", 1.125, seed=1), made("cut", 2.0)]
    both.append(made("MACquad", 1.25, iterate="lowest"))
    result = stored(both)
    for before, after in zip(both, result, strict=True):
        assert after.key == before.key
        assert (after.loss, after.average_precision) == (before.loss, before.average_precision)
        assert after.precision == pytest.approx(before.precision, rel=1e-8)
        assert after.radius == [pytest.approx(point, rel=1e-8) for point in before.radius]
        assert (after.effective, after.seconds, after.points) == (before.effective, 6.5, 10_000)
        assert after.all_radii
        for step, step_after in zip(before.history, after.history, strict=True):
            step = {name: step[name] for name in step if name != "free_loss"}
            assert {name: step_after[name] for name in step} == step
        if before.history:
            assert after.history[0]["free_loss"] == before.history[0]["free_loss"]
            assert after.iterate == before.iterate
    assert numbers.entries(result) == numbers.entries(both)


def test_nothing_becomes_a_tie():
    near = [made("MACcut", 5_904_801.0), made("cut", 5_904_803.0)]
    assert [record.loss for record in stored(near)] == [5_904_801, 5_904_803]


def test_what_was_not_measured_stays_so():
    nan = float("nan")
    [result] = stored([Record("KSH", "ITQ", "", 16, 0, nan, {10: 0.5}, CURVE)])
    assert result.loss != result.loss
    assert result.average_precision != result.average_precision
    assert result.history == []


def older(entry):
    """Return an entry as files were written before."""
    since = ("points", "iterate")
    entry = {k: v for k, v in entry.items() if not k.endswith("at radius") and k not in since}
    if "seconds of steps" in entry:
        entry["seconds"] = entry.pop("seconds of steps")
    return entry


def test_older_files():
    """In these, the seconds of the steps stand where those of the run belong."""
    [result] = numbers.records(map(older, numbers.entries([made("MACcut", 1.25)])))
    assert result.seconds == 5.25
    assert [step["seconds"] for step in result.history] == [3.0, 1.0, 1.25]
    assert [recall for recall, _ in result.radius] == pytest.approx([0.1 * i for i in range(1, 10)])
    assert result.radius[4][1] == pytest.approx(0.9 - 0.05 * 8)
    assert (result.points, result.all_radii, result.iterate) == (0, False, "lowest")


def test_claims_about_all_radii_are_not_judged_by_some():
    ends = [c for c in FIGURES["sup-nestederr"].claims if "very small and very large r" in c.words]
    records = [made("MACcut", 1.25), made("cut", 2.0)]
    assert [v.holds for v in judge(ends, stored(records))] == [False]
    some = numbers.records(map(older, numbers.entries(records)))
    assert [v.holds for v in judge(ends, some)] == [None]


def result(figure, records, **more):
    verdicts = [
        {"claim": v.words, "verdict": v.word, "numbers": v.numbers}
        for v in judge(figure.claims, records)
    ]
    return {"verdicts": verdicts, "results": numbers.entries(records), "notes": [], **more}


@pytest.fixture(scope="module")
def verdicts():
    return script("verdicts")


def test_later_runs_are_judged_with_the_first(verdicts):
    figure = FIGURES["sup-nestederr"]
    cut, quad = (
        [made(name, loss, iterate="lowest") for name, loss in both.items()]
        for both in ({"MACcut": 1.25, "cut": 2.0}, {"MACquad": 1.5, "quad": 1.75})
    )
    outdated = ["Run with one seed in place of 3.", "3 of 24 runs are missing, and more."]
    first = result(figure, cut, command="the first", notes=outdated)
    before = first["verdicts"][0]["numbers"].replace("37.5%", "37.4%")  # of numbers not rounded
    first["verdicts"][0]["numbers"] = before
    first["verdicts"][1]["numbers"] = "words of another test"
    first["results"] = [older(entry) for entry in first["results"]]
    later = result(figure, quad, command="the second", notes=["On another machine."])
    actual = verdicts["together"](figure, first, later)
    assert actual["command"] == "the first\n$ the second"
    outcomes = {v["claim"]: (v["verdict"], v["numbers"]) for v in actual["verdicts"]}
    assert list(outcomes) == [claim.words for claim in figure.claims]
    lower = "reduces the loss more than"
    assert outcomes[f"MACcut {lower} cut, in all cases"] == ("held", before)
    assert "of another test" not in outcomes[figure.claims[1].words][1]
    assert outcomes[f"MACquad {lower} quad, in all cases"][0] == "held"
    assert outcomes["MACcut usually outperforms MACquad"][0] == "held"
    assert outcomes["cut usually outperforms quad"][0] == "not held"
    # The first has no others.
    assert "at both in 0 of 2 curves" in outcomes[figure.claims[-1].words][1]
    # MACcut, MACquad and KSH with two hash functions and three numbers of bits, and eSPLH's MACcut.
    assert actual["notes"][:2] == ["Run with one seed in place of 3.", "On another machine."]
    assert actual["notes"][2].startswith("22 of 24 runs are missing")
    second = result(figure, [replace(record, seed=1) for record in cut], command="", notes=[])
    actual = verdicts["together"](figure, first, second)
    assert actual["notes"][0] == "Run with 2 seeds in place of 3."
    assert not any("one seed" in note for note in actual["notes"])


def test_panels_that_were_never_run_are_still_missing(verdicts):
    """Nor are runs forgotten that do not say of how many points they are."""
    figure = FIGURES["run-time"]
    cut, quad = (
        [made(name, 1.25, bits=48, kind=kind) for name in two for kind in ("linear", "rbf")]
        for two in (("cut", "MACcut"), ("quad", "MACquad"))
    )
    first = result(figure, cut, command="")
    first["results"] = [older(entry) for entry in first["results"]]
    actual = verdicts["together"](figure, first, result(figure, quad, command=""))
    _, missing = actual["notes"]
    assert missing.startswith("3 of 7 runs are missing")
    assert "MACcut, mu found" in missing
    assert "LIBSVM" in missing
    outcomes = {v["claim"]: v["numbers"] for v in actual["verdicts"]}
    assert "1.00 to 1.00 times as long" in outcomes[figure.claims[0].words]


def test_a_run_that_was_made_again_counts_once(verdicts):
    figure = FIGURES["sup-nestederr"]
    first = result(figure, [made("MACcut", 1.25), made("cut", 2.0)], command="")
    again = result(figure, [made("MACcut", 2.5)], command="")
    outcomes = verdicts["together"](figure, first, again)["verdicts"]
    assert outcomes[0]["verdict"] == "not held"
    assert "in 0 of 1 cases" in outcomes[0]["numbers"]


def test_later_runs_alone_are_an_error(verdicts, tmp_path, monkeypatch):
    (tmp_path / "run-time-later.json").write_text(json.dumps({"results": []}))
    monkeypatch.setitem(verdicts["results_of"].__globals__, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match=r"run-time-later\.json has nothing to be joined with"):
        verdicts["results_of"](FIGURES["run-time"], "run-time")
