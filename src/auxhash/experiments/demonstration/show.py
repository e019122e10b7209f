"""The page and what it shows: `Show` has the numbers, all from the library, `router` serves them.

The page asks for /show first. Without a `Show`, as where a user serves a model and a store of their
own, the answer says so, and the page works on the points of the service instead.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, HTTPException, Request, Response

from auxhash.codes import Packed, hamming, unpack
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.checks import ArgumentError
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points
from auxhash.experiments.datasets.fetch import cache as datacache
from auxhash.experiments.demonstration.learnt import (
    FREE,
    N_BITS,
    PAIRS,
    Learnt,
    codes_of,
    kept,
    outputs_of,
)
from auxhash.search import metrics
from auxhash.search.index import HammingIndex

JsonObject = dict[str, Any]

MAX_K = 200  # neighbours that a search gives, and ranks of the curves
STEP_K = 100  # rank of the precision of every step of MAC
HARD_K = 20  # rank by which a query is hard
PICTURES_PER_DIGIT = 3  # pictures of each digit, in the gallery and of the path
GREY_LEVELS = 16  # without white
MAP_SIDE = 1000  # of the map, in whole numbers
MAX_BODY_BYTES = 1 << 14  # of a search
LETTERS = "abcdefghijklmnopq"  # pixels 0..16 in the pictures that the page gets

TITLES = {
    "two-step": ("Two-step, linear", "MAC's start: free codes first, then a function for them"),
    "mac": ("MAC, linear", "codes and function found together, as in the paper"),
    "refined": ("MAC refined, linear", "MAC, then gradient descent on the loss itself"),
    "kernels": ("MAC refined, kernels", "the same, with radial basis functions"),
    "network": ("MAC refined, network", "the same, with one hidden layer"),
}
STATIC = {
    "page.css": "text/css; charset=utf-8",
    **dict.fromkeys(
        (
            "page.js",
            "ask.js",
            "dom.js",
            "pictures.js",
            "query.js",
            "results.js",
            "chart.js",
            "path.js",
            "map.js",
            "own.js",
        ),
        "text/javascript; charset=utf-8",
    ),
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, eq=False)
class ShownModel:
    """A hash function's codes: of the base, to be searched, and of the queries."""

    base: Packed
    queries: Packed
    index: HammingIndex


class Show:
    """Pictures with labels, models that encode them, and how MAC learnt one of these models."""

    def __init__(self, data: Dataset, seed: int, learnt: Learnt) -> None:
        if data.base.images is None or data.base.y is None:
            raise ValueError(f"the page shows pictures with labels, and {data.name} has none")
        self.data, self.seed, self.learnt = data, seed, learnt
        self.models = {name: self._shown(name) for name in learnt.functions}

    @classmethod
    def digits(cls) -> "Show":
        """The handwritten digits of scikit-learn, learnt in about ten seconds, then kept."""
        return cls.of(datasets.load("digits", seed=0))

    @classmethod
    def of(cls, data: Dataset, seed: int = 0, folder: str | Path | None = None) -> "Show":
        """A data set of pictures of 8 x 8 pixels, 0 to 16, whose training set is the base.

        What is learnt is kept in `folder`; by default, in that of the data sets.
        """
        return cls(data, seed, kept(data, seed, Path(folder or datacache.folder())))

    def encode(self, name: str, X: AnyArray) -> Packed:
        """Packed codes of pictures (n, 64) under a model."""
        return codes_of(self.learnt.functions[name], X)

    def _shown(self, name: str) -> ShownModel:
        base, queries = self.encode(name, self.data.base.X), self.encode(name, self.data.query.X)
        return ShownModel(base, queries, HammingIndex(N_BITS).add(base))

    @cached_property
    def about(self) -> JsonObject:
        """The pictures, and every model with its curves: what the page needs at first."""
        settings = ", ".join(f"{name}={value!r}" for name, value in (PAIRS | FREE).items())
        return {
            "show": True,
            "protocol": self.data.protocol,
            "call": f"MACHash({N_BITS}, {settings}, random_state={self.seed})",
            "n_bits": N_BITS,
            "most_k": self._max_k,
            "base": _pictures(self.data.base),
            "queries": _pictures(self.data.query),
            "gallery": self.gallery,
            "first": self._improved,
            "models": [self._model(name) for name in self.models],
        }

    @property
    def _max_k(self) -> int:
        return min(MAX_K, len(self.data.base))

    def _model(self, name: str) -> JsonObject:
        """A model's name, and precision and recall over all queries, ties by expectation."""
        model, truth = self.models[name], (self.data.query.y, self.data.base.y)
        ranks = np.arange(1, self._max_k + 1)
        scores = metrics.evaluate(model.queries, model.base, *truth, k=ranks, n_bits=N_BITS)
        title, about = TITLES[name]
        return {
            "name": name,
            "title": title,
            "about": about,
            "precision": _rounded(scores.precision),
            "recall": _rounded(scores.recall),
            "radius_precision": _rounded(scores.radius_precision),
            "radius_recall": _rounded(scores.radius_recall),
        }

    @cached_property
    def gallery(self) -> list[int]:
        """Queries to pick from: of each digit the first, and those hardest for two-step hashing."""
        labels, right = np.asarray(self.data.query.y), self._right("two-step")
        rows = []
        for label in np.unique(labels):
            these = np.flatnonzero(labels == label)
            hardest = these[1:][np.argsort(right[these[1:]], kind="stable")]
            rows += [these[0], *hardest[: PICTURES_PER_DIGIT - 1]]
        return [int(row) for row in rows]

    @cached_property
    def _improved(self) -> int:
        """The query of the gallery that gains most from two-step hashing to the refined model."""
        gain = self._right("refined") - self._right("two-step")
        return max(self.gallery, key=lambda row: (gain[row], -row))

    def _right(self, name: str) -> Array:
        """Share of the HARD_K nearest of each query that are the same digit."""
        model, labels = self.models[name], np.asarray(self.data.base.y)
        neighbors = labels[model.index.search(model.queries, HARD_K)[1]]
        right = neighbors == np.asarray(self.data.query.y)[:, None]
        share: Array = right.mean(axis=1)
        return share

    @cached_property
    def path(self) -> JsonObject:
        """The numbers of every step, and Z and h(X) of a few pictures of each digit."""
        labels = np.asarray(self.data.base.y)
        rows = [
            int(row)
            for y in np.unique(labels)
            for row in np.flatnonzero(labels == y)[:PICTURES_PER_DIGIT]
        ]
        truth = self.data.query.y, self.data.base.y
        steps = []
        for at, step in enumerate(self.learnt.steps):
            precision = metrics.precision_at_k(
                self.learnt.queries[at], self.learnt.H[at], *truth, self._step_k
            )
            steps.append(
                {
                    "iteration": step.iteration,
                    "mu": step.mu if np.isfinite(step.mu) else None,  # of the refinement
                    "loss": step.loss,
                    "free_loss": step.free_loss,
                    "violations": step.violations,
                    "precision": round(precision, 4),
                }
            )
        return {
            "steps": steps,
            "n_bits_in_all": len(labels) * N_BITS,
            "precision_at": self._step_k,
            "points": [self.followed(row) for row in rows],
        }

    @property
    def _step_k(self) -> int:
        return min(STEP_K, len(self.data.base))

    def followed(self, row: int) -> JsonObject:
        """Z and h(X) of one base point after each step."""
        row = checks.integer("row", row, 0, len(self.data.base) - 1)
        both = self.learnt.Z[:, row], self.learnt.H[:, row]
        return {"row": row, **dict(zip("ZH", map(_integers, both), strict=True))}

    @cached_property
    def map(self) -> JsonObject:
        """Places of base and queries in a square of MAP_SIDE: [x, y, x, y, ...]."""
        n = len(self.data.base)
        return {
            "side": MAP_SIDE,
            "base": self._places[:n].ravel().tolist(),
            "queries": self._places[n:].ravel().tolist(),
        }

    @cached_property
    def _places(self) -> Numbers:
        return self._placed(np.concatenate([self.data.base.X, self.data.query.X]))

    def _placed(self, X: AnyArray) -> Numbers:
        """Return where pictures land on the map; beyond its edge, on the edge."""
        low, high = self._corners
        places = (outputs_of(self.learnt.mapping, X) - low) / (high - low)
        rounded: Numbers = np.rint(places.clip(0, 1) * MAP_SIDE).astype(int)
        return rounded

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """The least and the greatest coordinates of base and queries on the map."""
        both = np.concatenate([self.data.base.X, self.data.query.X])
        places = outputs_of(self.learnt.mapping, both)
        return places.min(axis=0), places.max(axis=0)

    def codes(self, name: str) -> JsonObject:
        """A model's codes of the base, and a colour for each code: alike codes, alike colours."""
        packed = self.models[checks.one_of("model", name, self.models)].base
        return {"codes": _integers(packed), "colours": colours(packed, N_BITS)}

    def search(self, asked: object) -> JsonObject:
        """The answer to a search.

        It is for {"query": row}, {"base": row} or {"pixels": [64 numbers of 0 to 16], "label":
        the digit, if known}, each with {"models": [names]}. Of each model it holds the code, the
        nearest of the base, how many lie within each radius and, where the label is known,
        precision and recall at every k, ties in the order of the base, and at every radius.
        """
        if not isinstance(asked, dict) or len({"query", "base", "pixels"} & asked.keys()) != 1:
            raise ArgumentError("a search must be an object with query, base or pixels")
        if others := sorted(asked.keys() - {"query", "base", "pixels", "label", "models"}):
            raise ArgumentError(f"a search has no field {others[0]!r}")
        X, label, place = self._asked(asked)
        names = asked.get("models")
        if not isinstance(names, list) or not 1 <= len(names) <= len(self.models):
            raise ArgumentError("models must be a list of names of models")
        every = [checks.one_of("models", name, self.models) for name in names]
        return {
            "label": label,
            "place": place,
            "found": [{"model": name, **self._hits(name, X, label)} for name in every],
        }

    def _asked(self, asked: JsonObject) -> tuple[AnyArray, int | None, list[int]]:
        """The picture (1, 64) that a search is for, its label and its place on the map."""
        n = len(self.data.base)
        for name, points, start in (("query", self.data.query, n), ("base", self.data.base, 0)):
            if name in asked:
                if "label" in asked:
                    raise ArgumentError(f"label is for pixels; that of {name} is known")
                row = checks.integer(name, asked[name], 0, len(points) - 1)
                place = self._places[start + row].tolist()
                return points.X[row : row + 1], int(np.asarray(points.y)[row]), place
        X = _pixels(asked["pixels"], self.data.base.X.shape[1])
        label = asked.get("label")
        if label is not None:
            label = checks.integer("label", label, 0, int(np.max(np.asarray(self.data.base.y))))
        return X, label, self._placed(X)[0].tolist()

    def _hits(self, name: str, X: AnyArray, label: int | None) -> JsonObject:
        model, labels = self.models[name], self.data.base.y
        code = self.encode(name, X)
        distances, rows = model.index.search(code, self._max_k)
        counts = np.bincount(hamming(code, model.base)[0], minlength=N_BITS + 1)
        result = {
            "code": _integers(code)[0],
            "rows": rows[0].tolist(),
            "codes": _integers(model.base[rows[0]]),
            "distances": distances[0].tolist(),
            "within": np.cumsum(counts).tolist(),
        }
        if label is None:
            return result
        right = np.asarray(labels) == label
        hits = np.cumsum(right[rows[0]])
        by_radius = metrics.precision_recall_by_radius(
            code, model.base, [label], labels, n_bits=N_BITS
        )
        return result | {
            "precision": _rounded(hits / np.arange(1, len(hits) + 1)),
            "recall": _rounded(hits / max(1, right.sum())),
            "radius_precision": _rounded(by_radius[0]),
            "radius_recall": _rounded(by_radius[1]),
        }


def colours(packed: Packed, n_bits: int) -> list[str]:
    """A colour "#rrggbb" for each code: its first three principal components, in OKLab.

    Equal codes have equal colours, and codes that differ in few bits similar ones. All are of
    middling lightness, to be seen on white and on black.
    """
    codes = unpack(packed, n_bits).astype(np.float64)
    U, S, _ = np.linalg.svd(codes - codes.mean(axis=0), full_matrices=False)
    parts = np.zeros((len(codes), 3))
    parts[:, : min(3, len(S))] = (U * S)[:, :3]
    parts /= np.abs(parts).max(axis=0) + 1e-9  # nothing, where all codes are the same
    L, a, b = 0.64 + 0.1 * parts[:, 2], 0.17 * parts[:, 0], 0.17 * parts[:, 1]
    l_m_s = np.stack([L + 0.3963377774 * a + 0.2158037573 * b,
                      L - 0.1055613458 * a - 0.0638541728 * b,
                      L - 0.0894841775 * a - 1.2914855480 * b]) ** 3  # fmt: skip
    linear = np.array([[4.0767416621, -3.3077115913, 0.2309699292],
                       [-1.2684380046, 2.6097574011, -0.3413193965],
                       [-0.0041960863, -0.7034186147, 1.7076147010]]) @ l_m_s  # fmt: skip
    linear = np.clip(linear, 0, 1)
    light = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(255 * light).astype(int).T]


def _pixels(values: object, n: int) -> Array:
    """Pixels as a point (1, n)."""
    if not isinstance(values, list) or len(values) != n:
        kind = f"a list of {len(values)}" if isinstance(values, list) else type(values).__name__
        raise ArgumentError(f"pixels must be a list of {n} numbers, got {kind}")
    numbers = [checks.number("pixels", value, 0) for value in values]
    if max(numbers) > GREY_LEVELS:
        raise ArgumentError(f"pixels must be numbers from 0 to {GREY_LEVELS}, got {max(numbers)}")
    return np.array([numbers])


def _pictures(points: Points) -> JsonObject:
    """Labels, and pixels as letters, a for 0 to q for 16, one picture after another."""
    pixels = np.asarray(points.images).ravel()
    letters = np.frombuffer(LETTERS.encode(), np.uint8)[pixels]
    return {"labels": np.asarray(points.y).tolist(), "pixels": letters.tobytes().decode()}


def _integers(packed: Packed) -> list[int]:
    """Codes as whole numbers whose bit k is the code's bit k."""
    return [int.from_bytes(code.tobytes(), "little") for code in packed]


def _rounded(values: Array) -> list[float]:
    rounded: list[float] = np.round(values, 4).tolist()
    return rounded


async def _body(request: Request) -> object:
    """The JSON of a request, if it is not too long; it must hold no NaN, which is no JSON."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"a search takes at most {MAX_BODY_BYTES} bytes")
    try:
        return json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON: {error}") from error


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def router(show: Show | None) -> APIRouter:
    """The page (GET / and its files) and what it shows (GET /show..., POST /show/search).

    None of it is in the API document: it may change with the page. Without a show, /show says why
    there is none, and the rest is not found.
    """
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def page(request: Request) -> Response:
        return _static("index.html", "text/html; charset=utf-8", request)

    @routes.get("/static/{name}")
    def static(name: str, request: Request) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        return _static(name, STATIC[name], request)

    @routes.get("/show")
    def about() -> Response:
        return _json({"show": False} if show is None else show.about)

    if show is not None:
        _add_show(routes, show)
    return routes


def _add_show(routes: APIRouter, show: Show) -> None:
    @routes.get("/show/path")
    def path() -> Response:
        return _json(show.path)

    @routes.get("/show/path/{row}")
    def followed(row: str) -> Response:
        if not (row.isascii() and row.isdecimal() and len(row) < 10):
            raise HTTPException(422, f"row must be a whole number, got {row[:50]!r}")
        return _checked(lambda: show.followed(int(row)))

    @routes.get("/show/map")
    def places() -> Response:
        return _json(show.map)

    @routes.get("/show/codes/{name}")
    def codes(name: str) -> Response:
        return _checked(lambda: show.codes(name))

    @routes.post("/show/search")
    def search(asked: Annotated[object, Depends(_body)]) -> Response:
        return _checked(lambda: show.search(asked))


def _checked(answer: Callable[[], JsonObject]) -> Response:
    try:
        return _json(answer())
    except ArgumentError as error:
        raise HTTPException(422, str(error)) from error


def _json(value: JsonObject) -> Response:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Response(text, media_type="application/json", headers={"Cache-Control": "no-store"})


@cache
def _content(name: str) -> tuple[bytes, str]:
    """A file of the page, and its mark, by which browsers ask whether theirs is still the same."""
    content = files("auxhash.experiments.demonstration").joinpath("static", name).read_bytes()
    return content, f'"{sha256(content).hexdigest()[:24]}"'


def _static(name: str, kind: str, request: Request) -> Response:
    content, mark = _content(name)
    headers = {"ETag": mark, "Cache-Control": "no-cache"}
    if mark in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
