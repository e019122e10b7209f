"""fit, and what else pictures go through."""

import os
import re
import sys

import numpy as np
import pyarrow
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from sklearn.datasets import load_digits

import auxhash
from auxhash import MACHash, NeighborHash
from auxhash.cli import main
from auxhash.cli.fitting import rows_to_learn
from auxhash.cli.output import number
from auxhash.compute.neighbors import nearest
from auxhash.files import images
from auxhash.learn import baselines, neighborhash
from auxhash.learn.training.ranking import Judge
from auxhash.mac import affinity
from auxhash.search import metrics
from tests.cli.conftest import FEW_PAIRS


def test_fit_is_the_library_s(here, run, model):
    X, y = np.load("features.npy"), np.load("labels.npy")
    expected = MACHash(n_bits=12, n_similar=10, n_dissimilar=20, random_state=0).fit(X, y)
    loaded = auxhash.load(model)
    np.testing.assert_array_equal(loaded.encode(X), expected.encode(X))
    assert loaded.n_jobs is None


@pytest.mark.parametrize("name", ["features.npy", "features.fvecs"])
@pytest.mark.parametrize(("labels", "method"), [(["labels.npy"], MACHash), ([], NeighborHash)])
def test_points_are_learnt_from_where_they_are(here, run, monkeypatch, name, labels, method):
    learnt_from = []

    def fit(self, X, *more, **options):
        learnt_from.append(X)
        raise ValueError("enough")

    monkeypatch.setattr(method, "fit", fit)
    assert "enough" in run("fit", name, *labels, "-o", "not-written", code=1).output
    assert isinstance(learnt_from[0], np.memmap)
    assert learnt_from[0].filename == here / name


def test_the_same_command_writes_the_same_file(here, run, model):
    for n in (1, 2):
        common = ("fit", "features.npy", "labels.npy", "-o", f"again{n}", "--bits", "12")
        run(*common, "--similar", "10", "--dissimilar", "20", "--jobs", n)
        assert (here / f"again{n}").read_bytes() == model.read_bytes()


def test_the_help_tells_the_library_s_defaults():
    help_of = {option.name: getattr(option, "help", "") for option in main.commands["fit"].params}
    for name, value in MACHash().get_params().items():
        if help_of.get(name) and value is not None:
            assert re.search(rf"{value} (by default|\(the default\))", help_of[name])
    for name in ("metric", "query_function"):
        assert f"{getattr(NeighborHash, name)} (the default)" in help_of[name]


def test_tables_that_are_no_better_are_said_to_be_left_out(here, run, monkeypatch):
    monkeypatch.setattr(Judge, "prefers", lambda *_: False)
    ask = ("fit", "features.npy", "--hash-function", "linear", "--steps", "20", "--bits", "8")
    ask += ("--query-function", "linear", "-o", "t.safetensors")
    line = "Tables of queries are left out: they find no more neighbours than outputs do."
    assert line in run(*ask).output
    assert not run(*ask, "--json")["tables"]


@pytest.mark.parametrize("name", ["features.npz", "table.csv"])
def test_labels_inside_the_file(here, run, model, name):
    result = run("fit", name, "-o", "inside.safetensors", "--bits", "12", *FEW_PAIRS, "--json")
    assert (result["points"], result["features"], result["bits"]) == (120, 64, 12)
    loaded = auxhash.load("inside.safetensors")
    np.testing.assert_array_equal(loaded.codes_, auxhash.load(model).codes_)
    names = [f"pixel{i}" for i in range(64)] if name == "table.csv" else None
    assert getattr(loaded, "feature_names_in_", np.array(None)).tolist() == names


def test_pairs(here, run):
    run("fit", "features.npy", "--pairs", "pairs.csv", "-o", "p.safetensors", "--bits", "4",
        *FEW_PAIRS)  # fmt: skip
    i, j, y = np.loadtxt("pairs.csv", delimiter=",", skiprows=1).T
    pairs = affinity.from_pairs(i.astype(int), j.astype(int), y, 120)
    X = np.load("features.npy")
    expected = MACHash(n_bits=4, random_state=0).fit(X, affinity=pairs)
    np.testing.assert_array_equal(auxhash.load("p.safetensors").encode(X), expected.encode(X))


def test_labels_beside_pairs_are_said_to_judge_alone(here, run):
    common = ("--pairs", "pairs.csv", "--bits", "4", *FEW_PAIRS)
    said = run("fit", "features.npy", "labels.npy", "-o", "both.safetensors", *common).output
    assert "the pairs are learnt from, the labels only judge the result" in said
    assert "only judge" not in run("fit", "features.npy", "-o", "p.safetensors", *common).output
    X = np.load("features.npy")
    both, pairs = (auxhash.load(f"{name}.safetensors").encode(X) for name in ("both", "p"))
    np.testing.assert_array_equal(both, pairs)


def test_every_setting_reaches_the_model(here, run):
    settings = ["--loss", "hinge", "--solver", "cut", "--hash-function", "rbf"]
    counts = ["--similar", "all", "--dissimilar", "7", "--seed", "3", "--validation", "0.2"]
    result = run(
        *("fit", "features.npy", "labels.npy", "-o", "s.safetensors", "--bits", "5"),
        *(*settings, *counts, "--json"),
    )
    parameters = auxhash.load("s.safetensors").get_params()
    expected = {"loss": "hinge", "z_step": "cut", "hash_function": "rbf", "n_similar": None}
    expected |= {"n_dissimilar": 7, "random_state": 3, "validation": 0.2, "n_bits": 5}
    assert expected.items() <= parameters.items()
    assert 0 < result["validation_precision"] <= 1


def test_init_goes_on(here, run, model):
    common = ("new.npy", "new-labels.npy", "--init", model, "--jobs", "1")
    answer = run("fit", *common, "-o", "on.safetensors", "--json")
    hasher = auxhash.load(model).set_params(warm_start=True)
    hasher.fit(np.load("new.npy"), np.load("new-labels.npy"))
    assert answer["loss"] == hasher.loss_
    loaded = auxhash.load("on.safetensors")
    assert (loaded.n_bits, loaded.n_similar, loaded.warm_start) == (12, 10, False)
    result = run("fit", *common, "--bits", "8", "-o", "on.safetensors", code=1)
    assert "--init goes on with 12 for --bits, which" in result.output


def test_init_of_a_baseline_is_refused(here, run):
    baselines.ITQ(n_bits=4).fit(np.load("features.npy")).save("itq.safetensors")
    common = ("fit", "features.npy", "labels.npy", "--init", "itq.safetensors", "-o", "x")
    assert (
        "holds a model of ITQ, and only those of MACHash and NeighborHash can go on"
        in run(*common, code=1).output
    )


def test_auto_shows_what_it_chose_from(here, run):
    common = ("fit", "features.npy", "labels.npy", "-o", "auto.safetensors", "--auto", *FEW_PAIRS)
    fixed = ("--loss", "ksh", "--bits", "8")
    result = run(*common, *fixed, "--json")
    assert set(result["chosen"]) == {"hash_function"}
    [row] = [row for row in result["tried"] if result["chosen"].items() <= row.items()]
    seconds = number(row["seconds"] * 120 / 96)
    assert f"training on 120 points will take about {seconds} s" in result["read"]
    best = max(result["tried"], key=lambda row: row["precision"])
    assert result["chosen"]["hash_function"] == best["hash_function"]
    assert auxhash.load("auto.safetensors").hash_function == best["hash_function"]
    shown = run(*common, *fixed, "--hash-function", "linear").output
    assert "✓" in shown
    assert "held-out points" in shown


def test_a_folder_of_pictures(here, run):
    run("fit", "photos", "-o", "ph.safetensors", "--bits", "6", *FEW_PAIRS)
    hasher = auxhash.load("ph.safetensors")
    assert hasher.image_feature_ == "gist:22"  # the median of the smaller sides
    assert sorted(set(hasher.labels_)) == ["across", "down"]
    run("encode", "ph.safetensors", "photos", "-o", "ph.npy")
    folder = images.image_folder("photos")
    X = images.gist_feature(22).of(folder.paths)
    np.testing.assert_array_equal(np.load("ph.npy"), hasher.encode(X))
    run("fit", "photos", "--init", "ph.safetensors", "-o", "ph2.safetensors", *FEW_PAIRS)
    assert auxhash.load("ph2.safetensors").image_feature_ == "gist:22"


def test_a_feature_of_one_s_own_is_run_only_when_named(here, run):
    run("fit", "photos", "--features", "mine:colours", "-o", "own.safetensors", *FEW_PAIRS)
    assert auxhash.load("own.safetensors").image_feature_ == "mine:colours"
    sys.modules.pop("mine")
    result = run("encode", "own.safetensors", "photos", "-o", "own.npy", code=1)
    assert "--features mine:colours lets it be run" in result.output
    assert "mine" not in sys.modules
    run("encode", "own.safetensors", "photos", "--features", "mine:colours", "-o", "own.npy")
    assert len(np.load("own.npy")) == 24


def test_refinement_can_be_left_out(here, run):
    common = ("fit", "features.npy", "labels.npy", "-o", "plain.safetensors", "--bits", "6",
        *FEW_PAIRS)  # fmt: skip
    run(*common, "--no-refine")
    plain = auxhash.load("plain.safetensors")
    assert plain.refine is None
    assert all(step.mu < np.inf for step in plain.history_)
    run(*common, "--refine")
    assert auxhash.load("plain.safetensors").history_[-1].mu == np.inf


def test_what_was_read_is_said_before_training(here, run, monkeypatch):
    rest = ("--bits", "4", *FEW_PAIRS)
    csv = "\n".join(str(label) for label in np.load("labels.npy")) + "\n"
    (here / "labels.csv").write_text(csv)
    result = run("fit", "features.npy", "labels.csv", "-o", "t.safetensors", *rest)
    assert result.stderr.splitlines() == [
        "features.npy: 120 points of 64 features, float64",
        "labels.csv: 120 labels of 4 classes, int64; no line of names",
    ]
    table = "table.csv: 120 points of 64 features, float64; 64 columns, pixel0 to pixel63; "
    result = run("fit", "table.csv", "-o", "t.safetensors", *rest)
    assert result.stderr == table + "labels: column y; line 1 names the columns\n"
    result = run("fit", "table.csv", "--pairs", "pairs.csv", "-o", "t.safetensors", *rest)
    assert result.stderr.splitlines()[-2:] == [
        "pairs.csv: 119 pairs",
        "pairs and labels: the pairs are learnt from, the labels only judge the result",
    ]
    photos = "photos: 24 pictures of 2 classes: across (12), down (12); feature: gist:22"
    assert run("fit", "photos", "-o", "t.safetensors", *rest).stderr == photos + "\n"
    result = run("fit", "photos", "-o", "t.safetensors", *rest, "--json")
    assert result["read"] == [photos]
    monkeypatch.setattr(MACHash, "fit", None)  # and no later than that
    result = CliRunner().invoke(main, ["fit", "photos", "-o", "t.safetensors", *rest])
    assert result.exit_code == 1
    assert result.stderr.startswith(photos)


def test_embeddings_in_any_list_are_not_ids(here, run, model):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = np.load("features.npy"), np.load("labels.npy")
    lists = arrow.array(X.tolist(), arrow.large_list(arrow.float64()))
    columns = {"id": np.arange(120), "embedding": lists, "y": y}
    parquet.write_table(arrow.table(columns), "e.parquet")
    result = run("fit", "e.parquet", "-o", "e.safetensors", "--bits", "12", *FEW_PAIRS)
    assert result.stderr == (
        "e.parquet: 120 points of 64 features, float64; column embedding; "
        "labels: column y; passed over: id\n"
    )
    loaded = auxhash.load("e.safetensors")
    np.testing.assert_array_equal(loaded.encode(X), auxhash.load(model).encode(X))


def test_the_header_can_be_declared(here, run, model):
    X, y = np.load("features.npy"), np.load("labels.npy")
    lines = [",".join(map(str, row)) for row in X]
    (here / "counted.csv").write_text("\n".join([",".join(map(str, range(64))), *lines]))
    (here / "headed.csv").write_text("kind\n" + "\n".join(map(str, y)))
    common = ("fit", "counted.csv", "headed.csv", "-o", "h.safetensors", "--bits", "12", *FEW_PAIRS)
    assert "line 1 counts 0, 1, 2" in run(*common, code=1).output
    run(*common, "--header")
    loaded = auxhash.load("h.safetensors")
    np.testing.assert_array_equal(loaded.codes_, auxhash.load(model).codes_)
    result = run("fit", "features.npy", "headed.csv", "-o", "h.safetensors", code=1)
    assert "120 points, but headed.csv 121 labels (does line 1 name the column?" in result.output


def test_going_on_keeps_the_names_of_the_columns(here, run):
    few = ("--bits", "4", *FEW_PAIRS)
    run("fit", "table.csv", "-o", "named.safetensors", *few)
    names = auxhash.load("named.safetensors").feature_names_in_.tolist()
    for new in (("new.npy", "new-labels.npy"), ("table.csv",)):
        result = run("fit", *new, "--init", "named.safetensors", "-o", "on.safetensors")
        assert ("columns without names" in result.stderr) == (new[0] == "new.npy")
        assert auxhash.load("on.safetensors").feature_names_in_.tolist() == names


def test_labels_beside_a_table_that_has_its_own(here, run):
    result = run("fit", "table.csv", "labels.npy", "-o", "t.safetensors", "--bits", "4", *FEW_PAIRS)
    assert "table.csv: its own labels are not used" in result.stderr
    assert auxhash.load("t.safetensors").labels_.dtype.kind == "i"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit(0)", "Exit"),
    ],
)
def test_a_feature_that_cannot_be_imported(here, run, monkeypatch, content, why):
    monkeypatch.syspath_prepend(here)
    name = f"broken_{why.lower()}"
    (here / f"{name}.py").write_text(content)
    result = run("fit", "photos", "--features", f"{name}:f", "-o", "x", code=1)
    assert f"module {name} cannot be imported: " in result.output
    assert why in result.output


def test_dates_as_labels(here, run):
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")
    np.save("days.npy", days[np.arange(120) % 3])
    run("fit", "features.npy", "days.npy", "-o", "days.safetensors", *FEW_PAIRS)
    assert auxhash.load("days.safetensors").labels_.dtype == days.dtype
    command = ("evaluate", "features.npy", "--labels", "days.npy", "--model", "days.safetensors")
    assert run(*command, "--json")["protocol"]["ground_truth"] == "same label"


def test_without_labels_it_learns_from_neighbours_and_says_so(here, run):
    result = run("fit", "features.npy", "-o", "n.safetensors", "--bits", "10", "--seed", "2",
               "--hash-function", "linear", "--metric", "euclidean", "--json")  # fmt: skip
    assert "no labels, so that codes are learnt which rank its euclidean neighbours" in str(result)
    X = np.load("features.npy")
    expected = NeighborHash(10, "euclidean", "linear", random_state=2).fit(X)
    loaded = auxhash.load("n.safetensors")
    np.testing.assert_array_equal(loaded.encode(X), expected.encode(X))
    assert result["steps"] == expected.history_[-1].step
    assert result["rank"] == expected.history_[-1].rank


def test_init_says_what_becomes_of_the_codes_before(here, run):
    common = ("features.npy", "--hash-function", "linear", "--steps", "2")
    run("fit", *common, "-o", "old.safetensors")
    on = ("--init", "old.safetensors", "-o", "new.safetensors")
    assert run("fit", *common, *on).output.splitlines()[-1] == (
        "Codes of old.safetensors are another model's: encode all again with new.safetensors, or "
        "learn to ask the old codes with it (auxhash fit-queries)."
    )
    assert "another model's" not in str(run("fit", *common, *on, "--json"))


def test_init_goes_on_without_labels(here, run, model):
    few = ("--steps", "20", "--json")
    run("fit", "features.npy", "-o", "n.safetensors", "--bits", "10", "--seed", "2", *few,
        "--hash-function", "linear")  # fmt: skip
    result = run("fit", "features.npy", "--init", "n.safetensors", "-o", "on.safetensors", *few)
    assert result["steps"] == 20
    np.save("many.npy", load_digits().data[:400])  # of which some are held out, and no sample
    few = (*few, "--bits", "10")
    run("fit", "many.npy", "-o", "m.safetensors", "--hash-function", "linear", *few)
    for points, n in (("many.npy", 380), ("features.npy", 120)):
        report = run("fit", points, "--init", "m.safetensors", "-o", "m.safetensors", *few)
        assert report["learnt"] == n
        assert "a sample" not in str(report)
    old, new = (auxhash.load(name) for name in ("n.safetensors", "on.safetensors"))
    X = np.load("features.npy")
    assert (old.encode(X) == new.encode(X)).mean() > 0.8
    assert new.n_bits == 10
    wrong = run("fit", "features.npy", "labels.npy", "--init", "n.safetensors", "-o", "x", code=1)
    assert "was learnt from neighbours" in " ".join(wrong.output.split())
    wrong = run("fit", "features.npy", "--init", model, "-o", "x", code=1)
    assert "was learnt from labels or pairs" in " ".join(wrong.output.split())


def test_auto_without_labels_chooses_by_neighbours(here, run, monkeypatch):
    monkeypatch.setattr(neighborhash, "MIN_STEPS", 20)
    monkeypatch.setattr(neighborhash, "MAX_EPOCHS", 0)
    result = run("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--auto", "--json")
    chosen = max(result["tried"], key=lambda row: row["recall"])
    assert result["chosen"] == {"hash_function": chosen["hash_function"]}
    assert [row["hash_function"] for row in result["tried"]] == ["linear", "rbf", "network"]
    assert auxhash.load("n.safetensors").hash_function == chosen["hash_function"]
    result = run("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--auto",
               "--auto-seconds", "1e-9", "--json")  # fmt: skip
    assert result["tried"] == []
    assert result["protocol"].endswith(
        "too short for hash_function linear, hash_function rbf, hash_function network"
    )
    assert auxhash.load("n.safetensors").hash_function == "network"  # the default
    shown = run("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--auto",
                "--auto-seconds", "1e-9").output  # fmt: skip
    assert "Nothing was tried, and the defaults are taken: " in shown


def test_what_to_expect_without_labels(here, run):
    X = load_digits().data[:600]
    np.save("many.npy", X)
    arguments = ("fit", "many.npy", "-o", "m.safetensors", "--hash-function", "linear")
    result = run(*arguments, "--bits", "8", "--json")
    assert (result["points"], result["learnt"]) == (600, 570)
    last = result["expected_recall"][-1]
    assert (last["n_queries"], last["n_base"]) == (30, 570)
    hasher = auxhash.load("m.safetensors")
    # The held-out points are those that NeighborHash draws, and they have codes all the same.
    again = NeighborHash(8, hash_function="linear", max_points=570, random_state=0).fit(X)
    assert len(again.held_out_) == 30
    np.testing.assert_array_equal(again.codes_, hasher.codes_)
    others = np.setdiff1d(np.arange(600), again.held_out_)
    near = nearest(X[others], X[again.held_out_], 10, "cosine")[0]
    codes = hasher.codes_[again.held_out_], hasher.codes_[others]
    assert last["hamming"] == pytest.approx(metrics.recall_at_k(*codes, neighbors=near, k=10))
    shown = run(*arguments, "--bits", "8").output
    assert "learnt from 570 of 600 points" in shown
    assert "a sample" not in shown
    assert f"held out: {last['hamming']:.3f} by Hamming distance, {last['outputs']:.3f}" in shown
    few = run("fit", "queries.npy", "-o", "m.safetensors", "--bits", "4", "--json")
    assert "expected_recall" not in few
    by_tables = ("--query-function", "linear", "--steps", "20", "--bits", "8", "--json")
    last = run(*arguments, *by_tables)["expected_recall"][-1]
    learnt = auxhash.load("m.safetensors")
    distance = learnt.tables(X[again.held_out_])[:, 0, learnt.encode(X[others])[:, 0]]
    own = np.take_along_axis(distance, near, axis=1)[:, :, None]
    above, tied = ((one(distance[:, None], own)).sum(axis=2) for one in (np.less, np.equal))
    assert last["tables"] == pytest.approx(np.clip((10 - above) / tied, 0, 1).mean())
    sampled = run(*arguments, "--bits", "8", "--sample", "590", "--checkpoint", "c").output
    assert sampled.count("a sample of 570 of 600 points") == 2  # before and after training
    assert f"held out: {last['hamming']:.3f} by Hamming distance" in sampled


def test_tables_and_prefixes(here, run, keeps_tables):
    ask = ("fit", "features.npy", "--hash-function", "linear", "--steps", "20", "--bits", "24")
    more = ("--query-function", "linear", "--prefixes", "8,16", "--quality", "fast")
    said = run(*ask, *more, "-o", "t.safetensors", "--json")
    model = auxhash.load("t.safetensors")
    assert (model.prefixes, model.quality, model.query_function) == ((8, 16), "fast", "linear")
    assert model.tables(np.load("queries.npy")).shape == (40, 3, 256)
    assert said["table_rank"] == model.history_[-1].table_rank
    assert (said["steps"], said["table_steps"], said["tables"]) == (20, 14, True)
    output = run(*ask, *more, "-o", "t.safetensors").output
    assert " s and 20 steps, and 14 of tables\n" in output
    assert "Tables of queries are left out" not in output
    about = run("inspect", "t.safetensors", "--json")
    assert (about["prefixes"], about["tables"]) == ([8, 16], True)
    assert about["bytes"] == os.path.getsize("t.safetensors")
    output = run("inspect", "t.safetensors").output
    assert f"{about['bytes']:,} bytes" in output
    assert "tables of queries: search --by tables" in output
    assert "codes of their own: the first 8, 16 bits" in output
    run(*ask, "--query-function", "none", "-o", "n.safetensors")
    assert auxhash.load("n.safetensors").model_.table_function is None


@pytest.mark.parametrize("method", [None, "ITQ"])
def test_what_to_expect_with_labels(here, run, method):
    """fit ends with the precision of points that were not learnt from."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600].copy()
    y[123] = 77  # a class of its own, which is learnt from
    np.savez("many.npz", X=X, y=y)
    arguments = ("fit", "many.npz", "-o", "m.safetensors", "--bits", "8", "--jobs", "1")
    arguments += () if method is None else ("--method", method)
    reported = run(*arguments, "--json")["expected_precision"]
    hasher = auxhash.load("m.safetensors")
    assert 77 in hasher.labels_
    learnt, held_out = rows_to_learn(600, {"y": y}, None, 0, validated=False)
    assert sorted([*learnt, *held_out]) == list(range(600))
    np.testing.assert_array_equal(hasher.codes_, hasher.encode(X[learnt]))
    np.testing.assert_array_equal(hasher.labels_, y[learnt])
    precision = hasher.score(X[held_out], y[held_out], reported["k"])
    assert reported == {
        "precision": precision,
        "k": reported["k"],
        "n_queries": 30,
        "n_base": 570,
    }
    assert 40 < reported["k"] < 70  # as many as a class has
    shown = run(*arguments).output.splitlines()
    assert "learnt from 570 of 600 points of 64 features" in shown[-2]
    assert shown[-1] == (
        f"Precision to expect, measured on points held out: {reported['precision']:.3f} of the "
        f"first {reported['k']} of 570 codes share the label of a query (30 queries)"
    )
    assert "L(h)" not in shown[-2]
    sampled = run(*arguments, "--sample", "580").output
    assert sampled.count("a sample of 570 of 600 points") == 2


@pytest.mark.parametrize("name", ["many.npy", "many.parquet"])
def test_recall_of_another_method(here, run, name):
    """It is kept in the model file, so that recall of new points is measured beside it."""
    X = load_digits().data
    if name == "many.npy":
        np.save(name, X[:600])
    else:
        columns = {"id": [f"scan {i}" for i in range(600)], "vector": list(X[:600])}
        parquet.write_table(pyarrow.table(columns), name)
    result = run("fit", name, "-o", "m.safetensors", "--bits", "8", "--method", "ITQ", "--json")
    last = result["expected_recall"][-1]
    assert (last["n_queries"], last["n_base"]) == (30, 570)
    hasher = auxhash.load("m.safetensors")
    assert [vars(each) for each in hasher.expected_recall_] == result["expected_recall"]
    assert run("inspect", "m.safetensors", "--json")["expected_recall"] == result["expected_recall"]
    assert list(auxhash.Model.load("m.safetensors").learnt.expected) == hasher.expected_recall_
    np.save("new.npy", X[600:1200])
    new = run("inspect", "new.npy", "--model", "m.safetensors", "--json")
    assert (new["by"], new["lower"]) == ("hamming", False)
    hasher.fit(X)  # of other points nothing was measured
    assert not hasher.expected_recall_
    assert not hasher.model_.learnt.expected


def test_few_points_are_all_learnt_from(here, run):
    common = ("fit", "features.npy", "-o", "m.safetensors", "--bits", "4", *FEW_PAIRS)
    for more in (["labels.npy"], ["--pairs", "pairs.csv"], ["labels.npy", "--validation", "0.2"]):
        assert "to expect" not in run(*common, *more).output
