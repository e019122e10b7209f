"""index, add, remove and search."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import auxhash
from auxhash import HammingIndex, NeighborHash
from auxhash.files.writing import LockedError, locked
from auxhash.search.index import NamedIndex, rerank, tables_from_outputs
from tests.cli.conftest import FEW_PAIRS


@pytest.fixture
def codes(here, run, model):
    run("encode", model, "features.npy", "-o", "c.npy")
    run("index", "c.npy", "-o", "c.index", "--bits", "12")
    return here


def by_hamming_then_outputs(hasher, X, Q, n_bits=None):
    """Hamming distances of all points to each query by the first bits, and the order of both."""
    outputs = hasher.decision_function(Q)[:, :n_bits]
    differs = (hasher.transform(X)[None] != hasher.transform(Q)[:, None])[..., :n_bits]
    distances, cost = differs.sum(axis=2), (differs * np.abs(outputs)[:, None]).sum(axis=2)
    return distances, np.lexsort((cost.round(9), distances), axis=1)


def test_search_is_the_library_s(codes, run, model):
    """With the model at hand, equal distances are ordered by outputs, and those by the codes."""
    result = run("search", "c.index", "queries.npy", "--model", model, "-k", "3", "--json")
    hasher, Q = auxhash.load(model), np.load("queries.npy")
    index = HammingIndex(12).add(hasher.encode(np.load("features.npy")))
    every, order = by_hamming_then_outputs(hasher, np.load("features.npy"), Q)
    distances, ids = index.search(hasher.encode(Q), 3)[0], order[:, :3]
    assert result["ids"] != index.search(hasher.encode(Q), 3)[1].tolist()
    within = run("search", "c.index", "queries.npy", "--model", model, "-r", "2", "--json")
    numbers = [row[: (near <= 2).sum()].tolist() for row, near in zip(order, every, strict=True)]
    assert within["ids"] == numbers
    assert within["distances"] == [every[q, row].tolist() for q, row in enumerate(numbers)]
    assert result["distances"] == distances.tolist()
    assert result["ids"] == ids.tolist()
    run("search", "c.index", "queries.npy", "--model", model, "-k", "3", "-o", "f.npz")
    with np.load("f.npz") as stored:
        np.testing.assert_array_equal(stored["ids"], ids)
        np.testing.assert_array_equal(stored["distances"], distances)


def test_codes_of_another_model(here, run):
    """Models of one size are told apart by what they find."""
    X = load_digits().data
    np.save("more-queries.npy", X[400:450])
    X = X[:400]
    for seed in (0, 1):
        hasher = auxhash.baselines.LSH(64, random_state=seed).fit(X)
        hasher.save(f"{seed}.safetensors")
        np.save(f"{seed}.npy", hasher.encode(X))
    run("index", "0.npy", "-o", "0.index")
    said = "more-queries.npy: as far from the codes of 0.index as chance has it"
    for seed in (0, 1):
        result = run(
            "search", "0.index", "more-queries.npy", "--model", f"{seed}.safetensors", "-k", "1"
        )
        assert (said in result.stderr) == bool(seed)


def test_codes_as_queries(codes, run):
    result = run("search", "c.index", "c.npy", "-k", "1", "--json")
    assert np.ravel(result["distances"]).tolist() == [0] * 120


def test_ids_and_names(codes, run):
    run("index", "c.npy", "-o", "i.index", "--bits", "12", "--ids", "ids.npy")
    answer = run("search", "i.index", "c.npy", "-k", "200", "--json")
    assert np.shape(answer["ids"]) == (120, 120)  # all there are
    assert set(np.ravel(answer["ids"])) == {*range(0, 1200, 10)}
    (codes / "names.txt").write_text("\n".join(f"n{i}" for i in range(120)))
    shown = run("search", "c.index", "c.npy", "-k", "2", "--names", "names.txt").output
    assert "n0 (0)" in shown
    assert "The first 10 of 120 queries are shown; -o" in shown
    shown = run("search", "c.index", "c.npy", "-k", "12").output
    assert "The first 10 of 120 queries and 10 of up to 12 hits of each are shown; -o" in shown
    result = run("search", "i.index", "c.npy", "--names", "names.txt", code=1)
    assert "120 names, and the index has an id 1190" in result.output


def test_pictures_by_name(here, run):
    run("fit", "photos", "-o", "n.safetensors", "--bits", "8", "--jobs", "1")
    run("encode", "n.safetensors", "photos", "-o", "n.npy")
    run("index", "n.npy", "-o", "n.index")
    ask = ("search", "n.index", "photos", "--model", "n.safetensors", "--names", "photos")
    result = run(*ask, "-k", "1", "--json")
    assert result["query_names"][0] == "across/01.png"
    assert result["names"][0] == ["across/01.png"]
    assert "across/01.png (0)" in run(*ask, "-k", "1").output


def test_rerank_by_a_folder_of_pictures(here, run):
    """By names, or by the order of the folder: the features are those of the model."""
    run("fit", "photos", "-o", "n.safetensors", "--bits", "8", "--jobs", "1")
    run("encode", "n.safetensors", "photos", "-o", "n.npy")
    run("index", "n.npy", "-o", "n.index")
    run("index", "n.npy", "-o", "named.index", "--ids", "photos")
    ask = ("photos", "--model", "n.safetensors", "-k", "3", "--rerank", "photos", "--json")
    named, numbered = run("search", "named.index", *ask), run("search", "n.index", *ask)
    assert [row[0] for row in named["names"]] == named["query_names"]
    assert np.allclose(np.array(named["distances"])[:, 0], 0)
    assert np.array(named["distances"])[:, 1].min() > 0  # no ties, as codes have
    assert named["ids"] == numbered["ids"]
    run("encode", "n.safetensors", "photos", "-o", "q.npy")
    vectors = ("--rerank", "photos", "--query-vectors", "features.npy")
    said = run("search", "n.index", "q.npy", *vectors, code=1).output
    assert "photos is a folder, and only a --model of pictures knows their features" in said


@pytest.fixture
def few_codes(here):
    """An index of 1,200 points with few codes, 120 points ten times, and its model."""
    X, y = np.load("features.npy"), np.load("labels.npy") < 2
    hasher = auxhash.MACHash(8, random_state=0, n_jobs=1).fit(X, y)
    hasher.save("two.safetensors")
    np.save("tenfold.npy", np.tile(X, (10, 1)))
    HammingIndex(8).add(np.tile(hasher.encode(X), (10, 1))).save("two.index")
    return hasher


def test_coinciding_codes_are_said(few_codes, run):
    said = "codes cover 1"
    ask = ("search", "two.index", "queries.npy", "--model", "two.safetensors", "-k", "4")
    for more in ((), ("--rerank", "outputs")):
        assert said in run(*ask, *more).stderr
    assert said not in run(*ask, "--rerank", "tenfold.npy").stderr
    assert said in run("inspect", "two.index").output


def test_ties_are_re_ranked_as_a_whole(few_codes, run):
    """Candidates that are all equally far are no choice: more of them are taken."""
    X, Q = np.load("features.npy"), np.load("queries.npy")
    ask = ("search", "two.index", "queries.npy", "--model", "two.safetensors", "-k", "1", "--json")
    rows = np.ravel(run(*ask, "--rerank", "tenfold.npy")["ids"]) % 120
    codes, asked = few_codes.encode(X), few_codes.encode(Q)
    for query in range(len(Q)):
        apart = np.linalg.norm(X - Q[query], axis=1)
        equal = (codes == asked[query]).all(axis=1)
        assert apart[rows[query]] <= apart[equal].min(initial=np.inf)


def test_search_says_what_finds_more(here, run):
    X = load_digits().data[:400]
    np.save("many.npy", X)
    run("fit", "many.npy", "-o", "m.safetensors", "--hash-function", "linear", "--bits", "16",
        "--steps", "20", "--jobs", "1")  # fmt: skip
    run("encode", "m.safetensors", "many.npy", "-o", "m.npy")
    run("index", "m.npy", "-o", "m.index")
    ask = ("search", "m.index", "queries.npy", "--model", "m.safetensors", "-k", "2")
    expected = auxhash.load("m.safetensors").model_.learnt.expected[-1]
    said = f"--by outputs finds {expected.outputs:.3f} of the 10 nearest where this search finds"
    assert f"{said} {expected.hamming:.3f}" in run(*ask).output
    assert said not in run(*ask, "--by", "outputs").output
    assert "--rerank VECTORS finds more" in run(*ask, "--by", "outputs").output
    assert "finds more" not in run(*ask, "--rerank", "many.npy").output
    assert "finds" not in run(*ask, "--bits", "8").stdout  # so much is known of all bits only


def test_plus_minus_one(here, run, model):
    np.save("pm.npy", auxhash.load(model).transform(np.load("features.npy")))
    assert run("index", "pm.npy", "-o", "pm.index", "--json")["bits"] == 12


def test_names_are_shown_as_they_stand(codes, run):
    names = [f"{i:03}" for i in range(120)]
    names[0] = "first"
    (codes / "numbered.txt").write_text("\n".join(names))
    ask = ("search", "c.index", "c.npy", "-k", "1", "--names", "numbered.txt")
    answer = run(*ask, "--json")
    assert answer["names"][0] == ["first"]
    assert [row[0] for row in answer["names"]] == [names[row[0]] for row in answer["ids"]]
    assert answer["read"] == ["numbered.txt: 120 names: first, 001, ..."]
    result = run(*ask, "--header", code=1)
    assert "119 names, and the index has an id 119" in result.output


def test_ids_from_text(codes, run):
    (codes / "ids.csv").write_text("id,name\n" + "".join(f"{i * 7},n\n" for i in range(120)))
    result = run("index", "c.npy", "-o", "t.index", "--bits", "12", "--ids", "ids.csv", "--json")
    assert result["read"] == ["ids.csv: 120 ids, int64; column id; line 1 names the columns"]
    assert HammingIndex.load("t.index").ids.tolist() == list(range(0, 840, 7))
    (codes / "ids.csv").write_text("".join(f"{i:03}\n" for i in range(120)))
    run("index", "c.npy", "-o", "t.index", "--bits", "12", "--ids", "ids.csv")
    assert NamedIndex.load("t.index").names[7] == "007"


def named(folder, n, first=0):
    """A file of names, which no reader takes for numbers."""
    path = folder / "called.txt"
    path.write_text("\n".join(f"n{i}" for i in range(first, first + n)))
    return path


def test_add_and_remove(codes, run):
    run("index", "c.npy", "-o", "g.index", "--bits", "12")
    result = run("add", "g.index", "c.npy", "--json")
    assert result == {
        **{"index": "g.index", "added": 120, "codes": 240, "bits": 12},
        "fingerprint": None,
    }
    result = run("remove", "g.index", "0", "119", "239", "777", "778", "--json")
    assert (result["removed"], result["codes"], result["missing"]) == (3, 237, [777, 778])
    assert HammingIndex.load("g.index").ids.tolist() == [*range(1, 119), *range(120, 239)]
    said = run("remove", "g.index", "0", "5").output
    assert said == "g.index: 1 code removed, 236 left; 1 id not there: 0\n"
    assert run("add", "g.index", "c.npy", "--json")["codes"] == 356
    assert HammingIndex.load("g.index").ids[-120:].tolist() == [*range(240, 360)]  # no id again
    assert list(codes.glob("*.lock")) == []


def test_changes_elsewhere_leave_the_index_alone(codes, run):
    before = (codes / "c.index").read_bytes()
    run("add", "c.index", "c.npy", "--ids", "new-ids.npy", "-o", "new/larger.index")
    run("remove", "c.index", "--ids", "ids.npy", "1", "-o", "fewer.index")
    assert (codes / "c.index").read_bytes() == before
    assert HammingIndex.load("new/larger.index").ids[-1] == 1119
    assert len(HammingIndex.load("fewer.index")) == 120 - 12 - 1


def test_one_change_waits_for_another(codes, run, monkeypatch):
    """Two at once would each write the index without what the other has added."""
    run("index", "c.npy", "-o", "busy.index", "--bits", "12")
    save, locks = HammingIndex.save, []

    def watched(index, path):
        with pytest.raises(LockedError), locked(codes / "busy.index.lock"):
            pass
        locks.append(path)
        save(index, path)

    monkeypatch.setattr(HammingIndex, "save", watched)
    run("add", "busy.index", "c.npy")
    run("remove", "busy.index", "3")
    assert len(locks) == 2
    assert not (codes / "busy.index.lock").exists()


def test_a_change_of_nothing_writes_nothing(codes, run):
    before = (codes / "c.index").stat().st_mtime_ns
    assert run("remove", "c.index", "777", "--json")["missing"] == [777]
    assert (codes / "c.index").stat().st_mtime_ns == before


def test_names_survive_add_and_remove(codes, run):
    run("index", "c.npy", "-o", "n.index", "--bits", "12", "--ids", named(codes, 120))
    run("add", "n.index", "c.npy", "--ids", named(codes, 120, 120))
    result = run("remove", "n.index", "n0", "n7", "n150", "m1", "--json")
    assert (result["removed"], result["missing"]) == (3, ["m1"])
    run("add", "n.index", "c.npy", "--ids", named(codes, 120, 1000))
    result = run("search", "n.index", "c.npy", "-k", "400", "--json")
    kept = {f"n{i}" for i in [*range(240), *range(1000, 1120)] if i not in (0, 7, 150)}
    assert all(set(row) == kept for row in result["names"])
    packed = np.load("c.npy")
    for query, row in enumerate(result["names"]):  # each name has the code that it was given
        rows = [int(name[1:]) % 1000 % 120 for name in row]
        apart = np.bitwise_count(packed[rows] ^ packed[query]).sum(axis=1)
        assert result["distances"][query] == apart.tolist()
    assert "n1 (0)" in run("search", "n.index", "c.npy", "-k", "3").output
    assert ", called by names" in run("inspect", "n.index").output


def test_names_of_bytes(codes, run):
    np.save("bytes.npy", np.array([f"é{i}".encode() for i in range(120)]))
    run("index", "c.npy", "-o", "b.index", "--bits", "12", "--ids", "bytes.npy")
    assert NamedIndex.load("b.index").names[:2] == ["é0", "é1"]
    assert run("remove", "b.index", "--ids", "bytes.npy", "--json")["removed"] == 120


def test_names_that_look_like_numbers(codes, run):
    (codes / "padded.txt").write_text("\n".join(f"{i:03}" for i in range(120)))
    run("index", "c.npy", "-o", "p.index", "--bits", "12", "--ids", "padded.txt")
    (codes / "plain.txt").write_text("\n".join(f"{i}" for i in range(1000, 1120)))
    run("add", "p.index", "c.npy", "--ids", "plain.txt")
    assert run("remove", "p.index", "7", "007", "1001", "--json")["missing"] == ["7"]
    mixed = [f"{i}{'.5' * (i % 2)}" for i in range(5000, 5120)]
    (codes / "mixed.csv").write_text("id,n\n" + "".join(f"{name},0\n" for name in mixed))
    run("add", "p.index", "c.npy", "--ids", "mixed.csv")
    result = run("remove", "p.index", "5004", "5005.5", "--json")
    assert (result["removed"], result["missing"]) == (2, [])  # not called 5004.0
    result = run("remove", "p.index", "--ids", "mixed.csv", "--json")
    assert (result["removed"], result["missing"]) == (118, ["5004", "5005.5"])


def test_radius(codes, run):
    result = run("search", "c.index", "c.npy", "-r", "2", "--json")
    near, which = HammingIndex.load("c.index").radius_search(np.load("c.npy"), 2)
    assert result["ids"] == [row.tolist() for row in which]
    assert result["distances"] == [row.tolist() for row in near]
    assert (
        "120 queries, all within 2 bits of 120 codes"
        in run("search", "c.index", "c.npy", "-r", "2").output
    )
    run("search", "c.index", "c.npy", "-r", "2", "-o", "r.npz")
    with np.load("r.npz") as stored:
        assert stored["ids"][stored["stops"][5] : stored["stops"][6]].tolist() == result["ids"][5]
        assert stored["distances"].shape == stored["ids"].shape
    np.save("far.npy", ~np.load("c.npy")[:1] & np.uint8([255, 15]))
    assert run("search", "c.index", "far.npy", "-r", "0", "--json")["ids"] == [[]]


def test_a_single_code_is_one_query(codes, run):
    np.save("one.npy", np.load("c.npy")[3])
    result = run("search", "c.index", "one.npy", "-k", "2", "--json")
    assert result["ids"] == run("search", "c.index", "c.npy", "-k", "2", "--json")["ids"][3:4]


def test_k_is_capped_and_told(codes, run):
    said = run("search", "c.index", "c.npy", "-k", str(10**9)).output
    assert "120 queries, 120 nearest (all there are, not 1000000000) of 120 codes" in said
    assert "(all there are" not in run("search", "c.index", "c.npy", "-k", "120").output


def test_rerank_by_vectors(codes, run, model):
    X, Q = np.load("features.npy"), np.load("queries.npy")
    ask = ("search", "c.index", "queries.npy", "--model", model, "-k", "4")
    every = run(*ask, "--rerank", "features.npy", "--candidates", "120", "--json")
    apart = np.linalg.norm(X[None] - Q[:, None], axis=2)
    np.testing.assert_allclose(every["distances"], np.sort(apart, axis=1)[:, :4])
    result = run(*ask, "--rerank", "features.npy", "--candidates", "40", "--json")
    few = run("search", "c.index", "queries.npy", "--model", model, "-k", "40", "--json")["ids"]
    for query, row in enumerate(result["ids"]):
        best = sorted(few[query], key=apart[query].__getitem__)[:4]
        assert row == best
    run("encode", model, "queries.npy", "-o", "q.npy")
    options = ("--rerank", "features.npy", "--query-vectors", "queries.npy", "--json")
    options = (*options, "--candidates", "120")
    assert run("search", "c.index", "q.npy", "-k", "4", *options)["ids"] == every["ids"]
    cosine = run(*ask, "--rerank", "features.npy", "--metric", "cosine", "--json")
    assert np.max(cosine["distances"]) <= 2
    assert (result["metric"], cosine["metric"]) == ("euclidean", "cosine")


def test_rerank_by_columns_of_the_same_names(here, run):
    """Whatever order the columns have, in the queries and in the vectors."""
    run("fit", "table.csv", "-o", "named.safetensors", "--bits", "12", *FEW_PAIRS)
    run("encode", "named.safetensors", "table.csv", "-o", "named.npy")
    run("index", "named.npy", "-o", "named.index", "--bits", "12")
    lines = (here / "table.csv").read_text().splitlines()
    cells = np.array([line.split(",") for line in lines])
    rng, answers = np.random.default_rng(0), []
    for number in range(3):
        order = np.arange(65) if number == 0 else rng.permutation(65)
        (here / f"{number}.csv").write_text("\n".join(",".join(row) for row in cells[:, order]))
    files = ("0.csv", "0"), ("1.csv", "0"), ("0.csv", "1"), ("1.csv", "2"), ("features.npy", "1")
    for queries, vectors in files:
        common = ("search", "named.index", queries, "--model", "named.safetensors")
        result = run(*common, "--rerank", f"{vectors}.csv", "-k", "3", "--json")
        answers.append((result["distances"], result["ids"]))
    assert answers[0][0][0][0] == 0
    assert all(each == answers[0] for each in answers)
    run("encode", "named.safetensors", "0.csv", "-o", "q.npy")
    common = ("search", "named.index", "q.npy", "--rerank", "1.csv", "-k", "3", "--json")
    result = run(*common, "--query-vectors", "2.csv")
    np.testing.assert_allclose(result["distances"], answers[0][0], atol=1e-12)


@pytest.mark.parametrize("kind", ["rows", "numbers", "order", "names"])
def test_rerank_by_a_table_with_ids(codes, run, model, kind):
    """The ids say which row is whose; where those of the index may be row numbers, they must be."""
    X, rng = np.load("features.npy"), np.random.default_rng(0)
    numbers = {"numbers": 7 * np.arange(120), "order": rng.permutation(120)}
    ids = numbers.get(kind, np.arange(120)).astype(str)
    ids = [f"n{i}" for i in ids] if kind == "names" else list(ids)
    lines = [",".join([each, *map(str, x)]) for each, x in zip(ids, X, strict=True)]
    names = ",".join(["id", *(f"f{i}" for i in range(64))])
    for name, some in {
        "ids": lines,
        "shuffled": rng.permutation(lines),
        "fewer": lines[:-1],
        "twice": [*lines, lines[5]],
    }.items():
        (codes / f"{name}.csv").write_text("\n".join([names, *some]))
    (codes / "only-ids.txt").write_text("\n".join(["id", *ids]))
    run("index", "c.npy", "-o", "ids.index", "--bits", "12", "--ids", "only-ids.txt")
    common = ("search", "ids.index", "features.npy", "--model", model, "-k", "1", "--json")
    result = run(*common, "--rerank", "ids.csv", "--candidates", "120")
    assert np.ravel(result["distances"]).max() == 0
    if kind == "rows":
        said = run(*common, "--rerank", "shuffled.csv", code=1).output
        assert "its column of ids has another order" in said
        return
    actual = run(*common, "--rerank", "shuffled.csv", "--candidates", "120")
    assert (actual["distances"], actual["ids"]) == (result["distances"], result["ids"])
    said = run(*common, "--rerank", "fewer.csv", code=1).output
    assert f"1 id of the index not there: {ids[-1]}" in said
    assert "that of two rows" in run(*common, "--rerank", "twice.csv", code=1).output


def test_rerank_by_rows_of_an_index_with_ids(codes, run, model):
    """Row i is that of id i, and it is told where that is easily forgotten."""
    X, ids = np.load("features.npy"), np.random.default_rng(0).permutation(120)
    np.save("ids.npy", ids)
    np.save("far.npy", ids + 1)
    by_id = np.empty_like(X)
    by_id[ids] = X
    np.save("by-id.npy", by_id)
    run("index", "c.npy", "-o", "ids.index", "--bits", "12", "--ids", "ids.npy")
    common = ("search", "ids.index", "features.npy", "--model", model, "-k", "1")
    result = run(*common, "--rerank", "by-id.npy", "--candidates", "120", "--json")
    assert np.ravel(result["distances"]).max() == 0
    assert np.ravel(result["ids"]).tolist() == ids.tolist()
    said = run(*common, "--rerank", "by-id.npy").output
    assert "row i is taken for id i" in said
    assert (
        "row i is taken"
        not in run(*common[:1], "c.index", *common[2:], "--rerank", "features.npy").output
    )
    run("index", "c.npy", "-o", "far.index", "--bits", "12", "--ids", "far.npy")
    said = run("search", "far.index", *common[2:], "--rerank", "features.npy", code=1).output
    assert "there is no row for id 120" in said


def test_rerank_by_the_metric_of_the_model(codes, run):
    learn = ("fit", "features.npy", "--hash-function", "linear", "--bits", "12")
    run(*learn, "-o", "near.safetensors")
    run("encode", "near.safetensors", "features.npy", "-o", "near.npy")
    run("index", "near.npy", "--bits", "12", "-o", "near.index")
    ask = ("search", "near.index", "queries.npy", "--model", "near.safetensors", "-k", "4")
    ask = (*ask, "--rerank", "features.npy", "--candidates", "120")
    usual = run(*ask, "--json")
    assert usual["metric"] == "cosine"
    assert usual["ids"] == run(*ask, "--metric", "cosine", "--json")["ids"]
    assert usual["ids"] != run(*ask, "--metric", "euclidean", "--json")["ids"]
    assert "4 nearest, re-ranked by cosine distance, of 120 codes" in run(*ask).output


def test_rerank_by_outputs(codes, run, model):
    ask = ("search", "c.index", "queries.npy", "--model", model, "-k", "4")
    result = run(*ask, "--rerank", "outputs", "--json")
    hasher, index = auxhash.load(model), HammingIndex.load("c.index")
    ids = index.search(hasher.encode(np.load("queries.npy")), 40)[1]
    outputs = hasher.decision_function(np.load("queries.npy"))
    distances, expected = rerank.by_outputs(ids, outputs, index, 4)
    assert result["ids"] == expected.tolist()
    np.testing.assert_allclose(result["distances"], distances)
    run("index", "c.npy", "-o", "ao.index", "--bits", "12", "--approximate")
    ask = ("search", "ao.index", "queries.npy", "--model", model, "-k", "4", "--probe", "99")
    every = run(*ask, "--candidates", "120", "--rerank", "outputs", "--json")["distances"]
    ask = ("search", "c.index", *ask[2:-2], "--candidates", "120", "--rerank", "outputs", "--json")
    assert every == run(*ask)["distances"]


def test_all_codes_by_outputs(codes, run, model, monkeypatch):
    monkeypatch.setattr("auxhash.cli.queries.QUERIES_PER_SEARCH", 7)
    ask = ("search", "c.index", "queries.npy", "--model", model, "-k", "4", "--by", "outputs")
    result = run(*ask, "--json")
    hasher, index = auxhash.load(model), HammingIndex.load("c.index")
    outputs = hasher.decision_function(np.load("queries.npy"))
    every = np.tile(np.arange(120), (len(outputs), 1))
    distances, expected = rerank.by_outputs(every, outputs, index, 4)
    assert result["ids"] == expected.tolist()
    np.testing.assert_allclose(result["distances"], distances, rtol=1e-5, atol=1e-6)
    assert "4 nearest by outputs of 120 codes" in run(*ask).output
    again = run(*ask, "--rerank", "features.npy", "--candidates", "120", "--json")
    plain = run(*ask[:-2], "--rerank", "features.npy", "--candidates", "120", "--json")
    np.testing.assert_allclose(again["distances"], plain["distances"])


def test_all_codes_by_tables(codes, run, model, keeps_tables):
    ask = ("search", "c.index", "queries.npy", "--model", model, "-k", "4")
    assert f"{model} has no tables: --by outputs" in run(*ask, "--by", "tables", code=1).output
    settings = {"hash_function": "linear", "query_function": "linear", "n_steps": 20}
    hasher = NeighborHash(16, **settings, random_state=0).fit(np.load("features.npy"))
    hasher.save("t.safetensors")
    HammingIndex(16).add(hasher.codes_).save("t.index")
    result = run("search", "t.index", "queries.npy", "--model", "t.safetensors", "-k", "4",
               "--by", "tables", "--json")  # fmt: skip
    tables = hasher.tables(np.load("queries.npy"))
    distances, ids = HammingIndex(16).add(hasher.codes_).search_tables(tables, 4)
    assert result["ids"] == ids.tolist()
    np.testing.assert_allclose(result["distances"], distances, rtol=1e-5)


@pytest.fixture
def long_codes(here, keeps_tables):
    """Codes of 24 bits of a model with tables, trained for a prefix of 16."""
    settings = {"hash_function": "linear", "query_function": "linear", "prefixes": (16,)}
    hasher = NeighborHash(24, **settings, n_steps=20, random_state=0).fit(np.load("features.npy"))
    hasher.save("t.safetensors")
    HammingIndex(24, fingerprint=hasher.fingerprint_).add(hasher.codes_).save("t.index")
    return hasher


@pytest.mark.parametrize("by", ["hamming", "outputs", "tables"])
def test_the_first_bits_are_a_code_of_their_own(long_codes, run, by):
    ask = ("search", "t.index", "queries.npy", "--model", "t.safetensors", "--by", by, "-k", "4")
    result = run(*ask, "--bits", "16", "--json")
    Q, index = np.load("queries.npy"), HammingIndex(16).add(long_codes.codes_[:, :2])
    outputs = long_codes.decision_function(Q)[:, :16]
    tables = long_codes.tables(Q)[:, :2] if by == "tables" else tables_from_outputs(outputs)
    distances, ids = index.search_tables(tables, 4)
    if by == "hamming":
        every, order = by_hamming_then_outputs(long_codes, np.load("features.npy"), Q, 16)
        ids = order[:, :4]
        distances = np.take_along_axis(every, ids, 1)
        within = run(*ask[:-2], "--bits", "16", "--radius", "3", "--json")["ids"]
        n_within = (every <= 3).sum(axis=1)
        assert within == [row[:n].tolist() for row, n in zip(order, n_within, strict=True)]
    assert (result["bits"], result["ids"]) == (16, ids.tolist())
    np.testing.assert_allclose(result["distances"], distances, rtol=1e-5, atol=1e-6)
    assert "4 nearest" in (said := run(*ask, "--bits", "16")).output
    assert "trained for" not in said.stderr
    assert (
        "not trained for the first 8 bits as a code of their own, but the first 16: they may"
        in run(*ask, "--bits", "8").stderr
    )
    assert run(*ask, "--bits", "24", "--json")["ids"] == run(*ask, "--json")["ids"]


def test_codes_of_a_prefix(long_codes, run):
    """Codes and their first bytes are the same as queries; other lengths are refused."""
    codes = long_codes.codes_
    for name, packed in (("whole", codes), ("first", codes[:, :1]), ("two", codes[:, :2])):
        np.save(f"{name}.npy", packed)
    ask = ("--bits", "8", "--json")
    result = run("search", "t.index", "whole.npy", *ask)
    expected = HammingIndex(8).add(codes[:, :1]).search(codes[:, :1], 10)[1]
    assert result["ids"] == run("search", "t.index", "first.npy", *ask)["ids"] == expected.tolist()
    within = run("search", "t.index", "first.npy", "--radius", "0", *ask)["ids"]
    assert all(i in row for i, row in enumerate(within))
    assert "two.npy holds codes of 16 bits, not of 24 or 8" in (
        run("search", "t.index", "two.npy", "--bits", "8", code=1).output
    )


@pytest.mark.parametrize("bits", ["12", "0", "32", "-8"])
def test_first_bits_are_whole_bytes(long_codes, run, bits):
    said = run(
        "search", "t.index", "queries.npy", "--model", "t.safetensors", "--bits", bits, code=1
    )
    assert (
        f"--bits must be a multiple of 8 below 24, or all of the bits of t.index; got {bits}"
        in said.output
    )


def test_all_bits_of_an_index_need_not_be_whole_bytes(codes, run, model):
    """--bits takes as many of 12 as it says."""
    for queries in (("queries.npy", "--model", model), ("c.npy",)):
        ask = ("search", "c.index", *queries, "-k", "3", "--json")
        result = run(*ask, "--bits", "12")
        assert result.pop("bits") == 12
        assert result == run(*ask)
    assert "below 12, or all of the bits of c.index; got 16" in (
        run(*ask[:-1], "--bits", "16", code=1).output
    )


def test_first_bits_of_other_indexes(long_codes, run):
    np.save("c.npy", long_codes.codes_)
    names = [f"n{i}" for i in range(120)]
    NamedIndex(HammingIndex(24)).add(long_codes.codes_, names).save("n.index")
    expected = HammingIndex(8).add(long_codes.codes_[:, :1]).search(long_codes.codes_[:2, :1], 2)[1]
    result = run("search", "n.index", "c.npy", "--bits", "8", "-k", "2", "--json")
    assert result["names"][:2] == [[f"n{i}" for i in row] for row in expected]
    run("index", "c.npy", "-o", "a.index", "--approximate")
    said = run("search", "a.index", "c.npy", "--bits", "8", code=1).output
    assert "--bits is for exact indexes, and a.index is approximate" in said


def test_other_distances_need_a_model_and_k(codes, run, model):
    said = run("search", "c.index", "c.npy", "--by", "outputs", code=2).output
    assert "--by outputs needs the --model" in said
    ask = ("search", "c.index", "queries.npy", "--model", model, "--by", "tables")
    assert "--radius counts bits" in run(*ask, "--radius", "2", code=2).output


def test_the_approximate_index(codes, run):
    run("index", "c.npy", "-o", "a.index", "--bits", "12", "--approximate")
    all_lists = run("search", "a.index", "c.npy", "-k", "5", "--probe", "100", "--json")
    exact = run("search", "c.index", "c.npy", "-k", "5", "--json")
    assert all_lists["distances"] == exact["distances"]
    few = run("search", "a.index", "c.npy", "-k", "120", "--probe", "1", "--json")
    assert all(len(row) < 120 and min(row) >= 0 for row in few["ids"])  # no -1 for what is missing
    assert [len(row) for row in few["ids"]] == [len(row) for row in few["distances"]]
    said = run("search", "a.index", "c.npy", "-k", "120", "--probe", "1").output
    assert "or fewer where the lists that are looked at hold fewer" in " ".join(said.split())
    said = run("search", "a.index", "c.npy", "-k", "5", "--probe", "100").output
    assert "or fewer" not in said
    assert run("add", "a.index", "c.npy", "--json")["codes"] == 240
    assert run("remove", "a.index", "239", "240", "--json")["missing"] == [240]
    assert "an approximate index of 239 codes of 12 bits" in run("inspect", "a.index").output
    ask = ("--rerank", "features.npy", "--query-vectors", "features.npy", "--candidates", "120")
    run("index", "c.npy", "-o", "a.index", "--bits", "12", "--approximate")
    assert run("search", "a.index", "c.npy", *ask, "-k", "1", "--json")["ids"] == [
        [i] for i in range(120)
    ]


def test_the_approximate_index_with_names(codes, run):
    names = named(codes, 120)
    run("index", "c.npy", "-o", "an.index", "--bits", "12", "--approximate", "--ids", names)
    run("remove", "an.index", "n3")
    run("search", "an.index", "c.npy", "-k", "119", "--probe", "1", "-o", "an.npz")
    with np.load("an.npz") as stored:
        assert stored["names"].shape == stored["ids"].shape
        assert (stored["names"][stored["ids"] < 0] == "").all()
        filled = stored["ids"] >= 0
        assert (stored["names"][filled] == [f"n{i}" for i in stored["ids"][filled]]).all()


def test_a_line_of_names_shifts_none(codes, run):
    (codes / "titled.txt").write_text("title\n" + "\n".join(f"n{i}" for i in range(120)))
    ask = ("search", "c.index", "c.npy", "-k", "1", "--names", "titled.txt")
    assert "holds 121 names for the ids 0..119: does line 1" in run(*ask, code=1).output
    for option, first in (("--header", "n0"), ("--no-header", "title")):
        result = run(*ask, option, "--json")
        assert result["names"][result["ids"].index([0])] == [first]


def test_names_that_are_no_text(codes, run):
    np.save("bytes.npy", np.array([b"a\xff"] * 120))
    result = run("search", "c.index", "c.npy", "--names", "bytes.npy", code=1)
    assert "bytes.npy holds names that are no text" in result.output
