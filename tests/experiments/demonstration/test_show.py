"""Answers to the page: every number is the library's, and bad requests are refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the page needs auxhash[serve]")
pytest.importorskip("httpx", reason="the tests of the page need httpx")

from auxhash import MACHash
from auxhash.codes import hamming, pack, unpack
from auxhash.compute import context
from auxhash.experiments import datasets
from auxhash.experiments.demonstration import learnt
from auxhash.experiments.demonstration.learnt import FREE, N_BITS, PAIRS
from auxhash.experiments.demonstration.show import STATIC, Show, colours
from auxhash.model import modelfile
from auxhash.search import metrics
from tests.experiments.demonstration.shown import Client, application, small

ROUNDED = 5.001e-5  # numbers travel with four digits
PIXELS = [0] * 32 + [16] * 32


@pytest.fixture(scope="module")
def show():
    return small()


@pytest.fixture(scope="module")
def client(show):
    return Client(application(show))


@pytest.fixture(scope="module")
def data(show):
    return show.data


def unpacked_bits(packed):
    return [int.from_bytes(code.tobytes(), "little") for code in packed]


def test_the_linear_models_are_those_of_one_estimator(show, data):
    same = {"n_bits": N_BITS, **PAIRS, **FREE, "random_state": 0}
    mac = MACHash(**same, refine=None).fit(data.base.X, data.base.y)
    refined = MACHash(**same).fit(data.base.X, data.base.y)
    assert (show.encode("mac", data.query.X) == mac.encode(data.query.X)).all()
    assert (show.encode("refined", data.query.X) == refined.encode(data.query.X)).all()
    assert (show.learnt.H[0] == show.models["two-step"].base).all()
    steps = show.path["steps"]
    assert [step["loss"] for step in steps] == [step.loss for step in refined.history_]
    assert [step["violations"] for step in steps] == [step.violations for step in refined.history_]
    assert [step["mu"] for step in steps] == [
        None if step.mu == np.inf else step.mu for step in refined.history_
    ]


def test_curves_are_those_of_metrics(client, show, data):
    about = client.get("/show").json()
    ranks = [1, 2, 50, about["most_k"]]
    for model in about["models"]:
        sides = show.models[model["name"]].queries, show.models[model["name"]].base
        truth = data.query.y, data.base.y
        at = [rank - 1 for rank in ranks]
        precision = metrics.precision_at_k(*sides, *truth, k=ranks)
        recall = metrics.recall_at_k(*sides, *truth, k=ranks)
        by_radius = metrics.precision_recall_by_radius(*sides, *truth, n_bits=N_BITS)
        assert np.take(model["precision"], at) == pytest.approx(precision, abs=ROUNDED)
        assert np.take(model["recall"], at) == pytest.approx(recall, abs=ROUNDED)
        assert model["radius_precision"] == pytest.approx(by_radius[0], abs=ROUNDED)
        assert model["radius_recall"] == pytest.approx(by_radius[1], abs=ROUNDED)


def test_pictures_arrive_as_they_are(client, data):
    about = client.get("/show").json()
    for name, points in (("base", data.base), ("queries", data.query)):
        letters = np.frombuffer(about[name]["pixels"].encode(), np.uint8)
        assert (letters.reshape(-1, 8, 8) - ord("a") == points.images).all()
        assert about[name]["labels"] == list(points.y)
    labels = np.take(about["queries"]["labels"], about["gallery"])
    assert list(labels) == sorted(labels)
    assert len(set(about["gallery"])) == 30
    assert about["first"] in about["gallery"]


@pytest.mark.parametrize("kind", ["query", "base", "pixels"])
def test_a_search_is_exact(client, show, data, kind):
    """Neighbours, and precision and recall of what is listed, against brute force."""
    row, label = 5, 4
    X = {"query": data.query.X[[row]], "base": data.base.X[[row]], "pixels": np.array([PIXELS])}
    asked = {"pixels": PIXELS, "label": label} if kind == "pixels" else {kind: row}
    if kind != "pixels":
        label = int({"query": data.query, "base": data.base}[kind].y[row])
    names = list(show.models)
    answer = client.post("/show/search", json={**asked, "models": names}).json()
    assert answer["label"] == label
    for name, side in zip(names, answer["found"], strict=True):
        code = show.encode(name, X[kind])
        distance = hamming(code, show.models[name].base)[0]
        order = np.lexsort((np.arange(len(distance)), distance))[: len(side["rows"])]
        assert side["model"] == name
        assert side["rows"] == order.tolist()
        assert side["distances"] == distance[order].tolist()
        assert side["code"] == unpacked_bits(code)[0]
        assert side["codes"] == unpacked_bits(show.models[name].base[order])
        assert side["within"] == [(distance <= r).sum() for r in range(N_BITS + 1)]
        right = data.base.y == label
        k = np.arange(1, len(order) + 1)
        hits = np.cumsum(right[order])
        assert side["precision"] == pytest.approx(hits / k, abs=ROUNDED)
        assert side["recall"] == pytest.approx(hits / right.sum(), abs=ROUNDED)
        inside = [distance <= r for r in range(N_BITS + 1)]
        precision = [right[some].mean() if some.any() else 0 for some in inside]
        assert side["radius_precision"] == pytest.approx(precision, abs=ROUNDED)
        recall = [right[some].sum() / right.sum() for some in inside]
        assert side["radius_recall"] == pytest.approx(recall, abs=ROUNDED)


def test_without_a_label_nothing_is_right_or_wrong(client):
    asked = {"pixels": PIXELS, "models": ["mac"]}
    answer = client.post("/show/search", json=asked).json()
    assert answer["label"] is None
    assert "precision" not in answer["found"][0]


def test_a_drawn_picture_stands_where_the_mapping_puts_it(client, show, data):
    places = show.map["base"]
    asked = {"pixels": data.base.X[17].tolist(), "models": ["mac"]}
    assert client.post("/show/search", json=asked).json()["place"] == places[34:36]
    pixels = (data.base.X[17] + data.base.X[18]) / 2  # of nobody
    place = client.post("/show/search", json=asked | {"pixels": pixels.tolist()}).json()["place"]
    both = np.concatenate([data.base.X, data.query.X])
    every = learnt.outputs_of(show.learnt.mapping, np.vstack([both, pixels]))
    low, high = every[:-1].min(axis=0), every[:-1].max(axis=0)
    landed = (every[-1] - low) / (high - low) * show.map["side"]
    assert place == np.rint(landed.clip(0, show.map["side"])).tolist()
    assert min(places) == 0 or min(show.map["queries"]) == 0
    assert max(*places, *show.map["queries"]) == show.map["side"]


def test_the_path_ends_where_z_is_h(client, show, data):
    path = client.get("/show/path").json()
    steps = path["steps"]
    last = max(at for at, step in enumerate(steps) if step["mu"] is not None)
    assert steps[0]["mu"] == 0
    assert steps[0]["violations"] > 0
    assert steps[last]["violations"] == 0
    assert min(step["loss"] for step in steps[: last + 1]) <= steps[0]["loss"]
    for at in (0, 1, last):
        Z, H = (unpack(codes[at], N_BITS) for codes in (show.learnt.Z, show.learnt.H))
        assert (Z != H).sum() == steps[at]["violations"]
    assert path["n_bits_in_all"] == len(data.base) * N_BITS
    k = path["precision_at"]
    expected = metrics.precision_at_k(
        show.models["two-step"].queries, show.models["two-step"].base, data.query.y, data.base.y, k
    )
    assert steps[0]["precision"] == pytest.approx(expected, abs=ROUNDED)
    digits = [data.base.y[point["row"]] for point in path["points"]]
    assert digits == sorted(digits)


def test_any_point_can_be_followed(client, show):
    answer = client.get("/show/path/7").json()
    assert answer == {
        "row": 7,
        "Z": unpacked_bits(show.learnt.Z[:, 7]),
        "H": unpacked_bits(show.learnt.H[:, 7]),
    }


def test_alike_codes_have_alike_colours(client, show):
    answer = client.get("/show/codes/refined").json()
    assert answer["codes"] == unpacked_bits(show.models["refined"].base)
    of = {}
    for code, colour in zip(answer["codes"], answer["colours"], strict=True):
        assert of.setdefault(code, colour) == colour

    def seen(colour):
        return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], float)

    every = sorted(of)
    pairs = [(a, b) for a in every for b in every if a < b]
    near = [np.linalg.norm(seen(of[a]) - seen(of[b])) for a, b in pairs if (a ^ b).bit_count() <= 2]
    far = [np.linalg.norm(seen(of[a]) - seen(of[b])) for a, b in pairs if (a ^ b).bit_count() >= 7]
    assert np.mean(near) < np.mean(far) / 2


def test_colours_of_codes_that_are_all_the_same():
    [colour] = set(colours(pack(np.ones((4, 3), int)), 3))
    assert len(colour) == 7


BAD = {
    "no object": [],
    "no picture": {"models": ["mac"]},
    "two pictures": {"query": 1, "base": 1, "models": ["mac"]},
    "unknown field": {"query": 1, "models": ["mac"], "k": 3},
    "no models": {"query": 1},
    "models no list": {"query": 1, "models": "mac"},
    "empty models": {"query": 1, "models": []},
    "unknown model": {"query": 1, "models": ["cam"]},
    "model no text": {"query": 1, "models": [{}]},
    "too many models": {"query": 1, "models": ["mac"] * 6},
    "row beyond": {"query": 100, "models": ["mac"]},
    "row negative": {"base": -1, "models": ["mac"]},
    "row no number": {"base": "1", "models": ["mac"]},
    "row a bool": {"base": True, "models": ["mac"]},
    "label of a query": {"query": 1, "label": 3, "models": ["mac"]},
    "label beyond": {"pixels": PIXELS, "label": 10, "models": ["mac"]},
    "too few pixels": {"pixels": PIXELS[1:], "models": ["mac"]},
    "pixels in rows": {"pixels": [[0] * 8] * 8, "models": ["mac"]},
    "nested pixels": {"pixels": [[0]] * 64, "models": ["mac"]},
    "pixels no list": {"pixels": 3, "models": ["mac"]},
    "pixel negative": {"pixels": [-1, *PIXELS[1:]], "models": ["mac"]},
    "pixel too dark": {"pixels": [17, *PIXELS[1:]], "models": ["mac"]},
    "pixel too large": {"pixels": [10**400, *PIXELS[1:]], "models": ["mac"]},
    "pixel no number": {"pixels": ["a", *PIXELS[1:]], "models": ["mac"]},
}


@pytest.mark.parametrize("asked", BAD.values(), ids=BAD)
def test_a_bad_search_is_refused(client, asked):
    answer = client.post("/show/search", content=json.dumps(asked))
    assert answer.status_code == 422, answer.text
    assert len(answer.json()["detail"]) > 10


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"pixels": [NaN], "models": []}',
        b'{"a": Infinity}',
        b'{"pixels": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"base": ' + b"1" * 5000 + b', "models": ["mac"]}',
    ],
)
def test_what_is_no_json_is_refused(client, body):
    answer = client.post("/show/search", content=body)
    assert answer.status_code == 400
    assert "JSON" in answer.json()["detail"]


def test_a_long_search_is_refused(client):
    assert client.post("/show/search", content=b" " * 20_000).status_code == 413

    async def parts():
        for _ in range(3):
            yield b" " * 9000

    assert client.post("/show/search", content=parts()).status_code == 413


@pytest.mark.parametrize("row", ["300", "-1", "1.5", "x", "9" * 30, "²"])
def test_a_row_that_is_not_there_is_refused(client, row):
    assert client.get(f"/show/path/{row}").status_code == 422


def test_an_unknown_model_is_refused(client):
    answer = client.get("/show/codes/refine")
    assert answer.status_code == 422
    assert "did you mean 'refined'?" in answer.json()["detail"]


def test_the_page_and_its_files(client):
    kinds = {"/": "text/html", **{f"/static/{name}": kind for name, kind in STATIC.items()}}
    for path, kind in kinds.items():
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        assert not again.content
    for path in ("/static/none.js", "/static/index.html", "/static/..%2Fshow.py", "/static/"):
        assert client.get(path).status_code == 404


def test_no_file_asks_for_anything_elsewhere(client):
    """Nor holds script or style inline, which the policy would forbid."""
    for name in STATIC:
        text = client.get(f"/static/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
    page = client.get("/").text
    assert "http" not in page
    assert "<style" not in page
    assert "style=" not in page
    assert "<script>" not in page


def test_without_a_show_the_page_says_so():
    client = Client(application(None))
    assert client.get("/show").json() == {"show": False}
    assert client.get("/").status_code == 200
    assert client.get("/show/path").status_code == 404
    assert client.post("/show/search", json={}).status_code == 404


class TestKept:
    """Models are kept in a file, and never taken from a wrong one."""

    @pytest.fixture
    def learns(self, monkeypatch, show):
        """Counts how often something would be learnt; gives what is known already."""
        calls = []

        def learn(data, seed):
            calls.append(seed)
            return show.learnt

        monkeypatch.setattr(learnt, "learn", learn)
        return calls

    def test_once(self, tmp_path, show, data, learns):
        first, second = (Show.of(data, folder=tmp_path) for _ in range(2))
        assert learns == [0]
        assert second.about == first.about == show.about
        assert second.path == show.path
        assert second.map == show.map
        [file] = (tmp_path / "show").iterdir()
        assert modelfile.read(file).kind == "Show"

    def test_other_data_and_seeds_are_learnt(self, tmp_path, data, learns):
        learnt.kept(data, 0, tmp_path)
        learnt.kept(data, 1, tmp_path)
        other = replace(data, base=replace(data.base, y=data.base.y[::-1]))
        learnt.kept(other, 0, tmp_path)
        learnt.kept(other, 0, tmp_path)
        assert learns == [0, 1, 0]

    @pytest.mark.parametrize("damage", ["cut", "changed", "foreign"])
    def test_a_damaged_file_is_replaced(self, tmp_path, data, learns, damage):
        learnt.kept(data, 0, tmp_path)
        [file] = (tmp_path / "show").iterdir()
        content = file.read_bytes()
        wrong = {"cut": content[:-9], "changed": content[:-1] + b"\x01", "foreign": b"x" * 100}
        file.write_bytes(wrong[damage])
        with pytest.warns(UserWarning, match="cannot be used, and is made again"):
            learnt.kept(data, 0, tmp_path)
        assert file.read_bytes() == content
        assert learns == [0, 0]

    def test_parts_that_do_not_fit_are_refused(self, show, data):
        for wrong in (
            replace(show.learnt, Z=show.learnt.Z[:, 1:]),
            replace(show.learnt, queries=show.learnt.queries[1:]),
            replace(show.learnt, mapping=show.learnt.functions["mac"]),
            replace(show.learnt, functions={"mac": show.learnt.functions["mac"]}),
        ):
            with pytest.raises(ValueError):
                wrong.check(data)

    def test_without_a_place_to_write_it_is_shown_all_the_same(self, tmp_path, data, learns):
        (tmp_path / "show").write_text("a file where a folder is to be")
        with pytest.warns(UserWarning, match="not kept"):
            Show.of(data, folder=tmp_path)


def test_the_same_bytes_on_any_number_of_threads(show, data):
    with context.using(n_jobs=1):
        one = learnt.learn(data, 0)
    for name in ("Z", "H", "queries"):
        assert (getattr(one, name) == getattr(show.learnt, name)).all()
    assert (one.mapping.W == show.learnt.mapping.W).all()
    for name, h in one.functions.items():
        codes = learnt.codes_of(h, data.query.X)
        assert (codes == show.encode(name, data.query.X)).all()


def test_a_training_set_that_is_not_the_base_is_refused():
    with pytest.raises(ValueError, match="train must be the base"):
        learnt.learn(datasets.load("digits", n_train=100, n_base=200), 0)
