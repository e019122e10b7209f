"""The model that made each file, for every pair that commands bring together: same, other, none."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

import auxhash
from auxhash import HammingIndex
from auxhash.files import codefiles
from auxhash.search.index import load

OPTIONS = {"exact": (), "named": ("--ids", "names.txt"), "approximate": ("--approximate",)}
MADE = ("same", "other", "none")
KNOWN = ("0.safetensors", "1.safetensors", "0.npy")  # codes of MADE, as seen from model 0


@pytest.fixture(scope="module")
def marks(made):
    """Fingerprints of the models 0 and 1, of 12 bits; their codes, in files, and labels."""
    X, y = load_digits(return_X_y=True)
    folder = made / "marks"
    folder.mkdir()
    np.save(folder / "points.npy", X[:240])
    np.save(folder / "labels.npy", y[:240])
    (folder / "names.txt").write_text("\n".join(f"n{i}" for i in range(240)))
    (folder / "more.txt").write_text("\n".join(f"m{i}" for i in range(240)))
    fingerprints = []
    for seed in (0, 1):
        hasher = auxhash.baselines.LSH(12, random_state=seed).fit(X)
        hasher.save(folder / f"model{seed}.safetensors")
        fingerprints.append(hasher.fingerprint)
        if seed == 0:
            asker = auxhash.QueryTables(12, "linear", n_steps=3, random_state=0)
            asker.fit(X[:240], np.arange(240), hasher.encode(X[:240]), hasher.fingerprint)
            asker.save(folder / "asker.safetensors")
    return fingerprints


@pytest.fixture
def there(marks, here, run, monkeypatch):
    """The folder of `marks` as the working directory, with codes of both models."""
    monkeypatch.chdir(here / "marks")
    for model, codes in zip((0, 1, 0), KNOWN, strict=True):
        run("encode", f"model{model}.safetensors", "points.npy", "-o", codes)
    return here / "marks"


def indexed(run, kind, codes):
    bits = ("--bits", "12") if codes.endswith(".npy") else ()
    run("index", codes, "-o", "i.index", *bits, *OPTIONS[kind])


def expect(run, marks, command, known, refused):
    """Run a command that brings things together; they are `known` or not, or `refused`."""
    result = run(*command, code=int(refused))
    if refused:
        [line] = result.stderr.splitlines()[-1:]
        both = rf"Error: \S+ was made by model {marks[1]} and .* by model {marks[0]}: .*--any-model"
        assert re.match(both, line)
        result = run(*command, "--any-model")
    notes = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
    assert len(notes) == (not known and not refused)
    assert all("not say which model made the codes" in line for line in notes)
    assert "Note:" not in run(*command, "--any-model").stderr


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("made_by", MADE)
@pytest.mark.parametrize("asker", ["model", "codes", "array", "tables"])
def test_search(there, run, marks, kind, made_by, asker):
    indexed(run, kind, KNOWN[MADE.index(made_by)])
    queries = {
        "model": ("points.npy", "--model", "model0.safetensors"),
        "codes": ("0.safetensors",),
        "array": ("0.npy",),
        "tables": ("points.npy", "--model", "asker.safetensors", "--by", "tables"),
    }[asker]
    known = asker != "array" and made_by != "none"
    refused = known and made_by == "other"
    expect(run, marks, ("search", "i.index", *queries, "-k", "2"), known, refused)
    result = run("search", "i.index", *queries, "-k", "2", "--any-model", "--json")
    assert result["fingerprint"] == {"same": marks[0], "other": marks[1], "none": None}[made_by]


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("made_by", MADE)
@pytest.mark.parametrize("codes", ["0.safetensors", "0.npy"])
def test_add(there, run, marks, kind, made_by, codes):
    indexed(run, kind, KNOWN[MADE.index(made_by)])
    before = load("i.index").fingerprint
    known = codes != "0.npy" and made_by != "none"
    refused = known and made_by == "other"
    ids = ("--ids", "more.txt") if kind == "named" else ()
    command = ("add", "i.index", codes, *ids, "-o", "new.index")
    expect(run, marks, command, known, refused)
    after = before or (marks[0] if codes != "0.npy" else None)
    assert load("new.index").fingerprint == after
    assert run(*command, "--any-model", "--json")["fingerprint"] == after
    run("remove", "new.index", "n1" if kind == "named" else "1")
    assert load("new.index").fingerprint == after


@pytest.mark.parametrize("kind", OPTIONS)
def test_index(there, run, marks, kind):
    """Nothing is compared, and the index says what its codes said."""
    for codes, mark in zip(KNOWN, (*marks, None), strict=True):
        indexed(run, kind, codes)
        loaded = load("i.index")
        assert (loaded.fingerprint, loaded.n_bits, len(loaded)) == (mark, 12, 240)
        result = run("inspect", "i.index", "--json")
        assert (result["fingerprint"], result["bits"]) == (mark, 12)
        assert (mark or "does not say which model") in run("inspect", "i.index").output


@pytest.mark.parametrize("made_by", MADE)
@pytest.mark.parametrize("queries", ["0.safetensors", "0.npy"])
def test_evaluate(there, run, marks, made_by, queries):
    base = KNOWN[MADE.index(made_by)]
    known = queries != "0.npy" and made_by != "none"
    labels = ("--labels", "labels.npy", "--base-labels", "labels.npy")
    command = ("evaluate", base, queries, *labels, "-k", "5", *(() if known else ("--bits", "12")))
    expect(run, marks, command, known, known and made_by == "other")
    mark = {"same": marks[0], "other": marks[1], "none": None}[made_by]
    after = mark or (marks[0] if queries != "0.npy" else None)
    assert run(*command, "--any-model", "--json")["fingerprint"] == after


def test_evaluate_by_a_model(there, run, marks):
    sides = ("--labels", "labels.npy", "--base-labels", "labels.npy")
    result = run(
        "evaluate", "points.npy", "points.npy", "--model", "model1.safetensors", *sides, "--json"
    )
    assert result["fingerprint"] == marks[1]


def test_encode_and_inspect(there, run, marks):
    for codes, mark in zip(KNOWN, (*marks, None), strict=True):
        bits = ("--bits", "12") if mark is None else ()
        result = run("inspect", codes, *bits, "--json")
        assert (result["fingerprint"], result["bits"], result["codes"]) == (mark, 12, 240)
        assert (mark or "does not say which model") in run("inspect", codes, *bits).output
    command = ("encode", "model0.safetensors", "points.npy", "-o", "c.safetensors", "--json")
    assert run(*command)["fingerprint"] == marks[0]
    np.testing.assert_array_equal(codefiles.read("c.safetensors").codes, np.load("0.npy"))
    said = run("inspect", "1.safetensors", "--model", "model0.safetensors", code=1).output
    assert f"1.safetensors was made by model {marks[1]} and the codes of model0" in said
    assert marks[0] in run("inspect", "0.safetensors", "--model", "model0.safetensors").output
    with_note = run("inspect", "0.npy", "--model", "model0.safetensors")
    assert with_note.stderr.count("does not say which model") == 1


def test_a_folder_is_not_continued_with_another_model(there, here, run, marks):
    for model, code in ((0, 0), (0, 0), (1, 1)):
        arguments = (f"model{model}.safetensors", "../parts/*.parquet", "-o", "codes")
        result = run("encode", *arguments, "--json", code=code)
        if not code:
            assert result["fingerprint"] == marks[0]
    assert (
        f"was made by model {marks[0]}, and this is model {marks[1]}: give another" in result.output
    )


def test_the_number_of_bits_is_that_of_the_file(there, run):
    said = run("index", "0.safetensors", "-o", "i.index", "--bits", "16", code=1).output
    assert "Error: 0.safetensors holds codes of 12 bits, and codes of 16 are needed" in said
    run("index", "0.npy", "-o", "wide.index")
    said = run("search", "wide.index", "0.safetensors", code=1).output
    assert "Error: 0.safetensors holds codes of 12 bits, and codes of 16 are needed" in said


def test_what_holds_no_codes_is_told(there, run):
    said = run("index", "model0.safetensors", "-o", "i.index", code=1).output
    assert "model0.safetensors is no whole file of codes: it has no metadata auxhash.codes" in said
    said = run("search", "0.safetensors", "0.npy", code=1).output
    assert "0.safetensors is not an index" in said
    said = run("encode", "0.safetensors", "points.npy", "-o", "x.npy", code=1).output
    assert "0.safetensors is a safetensors file, but no model" in said
    assert "c.npz must end in .npy or .safetensors" in (
        run("encode", "model0.safetensors", "points.npy", "-o", "c.npz", code=1).output
    )


def test_chance_is_tested_where_fingerprints_do_not_agree(here, run):
    """An index that states the model of the queries, although its codes are of another."""
    X = load_digits().data
    np.save("more-queries.npy", X[400:450])
    zero, one = (auxhash.baselines.LSH(64, random_state=seed).fit(X[:400]) for seed in (0, 1))
    zero.save("0.safetensors")
    search = ("search", "i.index", "more-queries.npy", "--model", "0.safetensors", "-k", "1")
    for mark, options in (
        (zero.fingerprint, ()),
        (None, ()),
        (one.fingerprint, ("--any-model",)),
    ):
        HammingIndex(64, fingerprint=mark).add(one.encode(X[:400])).save("i.index")
        output = run(*search, *options).stderr
        assert ("as chance has it" in output) == (mark != zero.fingerprint)
