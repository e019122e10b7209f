"""Service: requests to a model and a store, without HTTP.

A request that cannot be answered raises RefusedError with the reason.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np

from auxhash.codes import Packed, as_packed, n_bytes
from auxhash.compute import checks, deadline
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.fingerprint import OtherModelError
from auxhash.compute.version import __version__
from auxhash.search.index.tables import VALUES_PER_BYTE, Tables, as_tables, tables_from_outputs
from auxhash.serve.hits import Neighbours, Pairs, Payloads, QueryCodes, to_json
from auxhash.serve.incoming import IncomingPoints
from auxhash.serve.limits import Limits
from auxhash.serve.refused import RefusedError, invalid, unavailable
from auxhash.serve.schemas import HAMMING, Encode, Filter, NewPoint, Queries
from auxhash.stores import Having, Point, ReencodingError, Store
from auxhash.stores.ids import AnyIds, Id, first_twice
from auxhash.stores.store import Among, n_candidates

if TYPE_CHECKING:
    from auxhash.learn.hasher import Hasher
    from auxhash.model.model import Model
    from auxhash.serve.pictures import Pictures

DEFAULT_K = 10
REENCODING_SECONDS = 60  # after which a request that waits for the new codes may come again


class Service:
    """Answers requests from a store of codes; any thread may call any method.

    Args:
        encoder: encodes vectors; without, requests can have only codes.
        pictures: turns images into vectors, for the encoder.
        old: the model of the codes in the store, until they are encoded again by `encoder`.
        any_model: use `encoder` whatever model made the codes in the store.
        asker: encodes vectors of queries, in place of `encoder`; it was learnt for its codes.
    """

    def __init__(
        self,
        store: Store,
        encoder: "Model | Hasher | None" = None,
        pictures: "Pictures | None" = None,
        limits: Limits | None = None,
        old: "Model | Hasher | None" = None,
        any_model: bool = False,
        asker: "Model | Hasher | None" = None,
    ) -> None:
        encoder, old, asker = (
            None if each is None else _model(each) for each in (encoder, old, asker)
        )
        models = [model for model in (encoder, old) if model is not None]
        if asker is not None:
            _check_asker(asker, encoder, any_model)
        for model in models:
            if model.n_bits != store.n_bits:
                raise ValueError(
                    f"the model makes codes of {model.n_bits} bits, and {store.url} holds codes of "
                    f"{store.n_bits}"
                )
        self.store, self.limits, self._any_model = store, limits or Limits(), any_model
        self._encoder, self._pictures, self._asker = encoder, pictures, asker
        self._encoders = {model.fingerprint: model for model in models}
        self._fingerprint = next(iter(self._encoders), None)  # of the encoder
        self._incoming = IncomingPoints()
        self._check_store()

    def _check_store(self) -> None:
        """Raise OtherModelError if the codes in the store are of no model of the service."""
        if self._encoder is None or self.store.fingerprint in self._encoders:
            return
        try:
            self.store.check_model("the model", self._fingerprint, self._any_model)
        except OtherModelError as error:
            raise OtherModelError(
                f"{error}; --old-model takes the model of the codes, until `auxhash store "
                "encode-again` has replaced them"
            ) from None

    def close(self) -> None:
        self.store.close()

    def info(self) -> dict[str, Any]:
        made_by = self.store.fingerprint
        encoder = self._encoders.get(made_by or "", self._encoder)
        learnt = None if encoder is None else encoder.learnt
        return {
            "name": "auxhash",
            "version": __version__,
            "store": self.store.url.partition(":")[0],
            "points": self.store.count(),
            "ids": self.store.id_type,
            "n_bits": self.store.n_bits,
            "n_features": _n_features(encoder),
            "n_query_features": _n_features(self._asker or encoder),
            "model": self._fingerprint,
            "made_by": made_by,
            "learnt": None
            if learnt is None
            else {
                "method": learnt.method,
                "points": learnt.n_points,
                "data": learnt.data,
                "expected_recall": [vars(each) for each in learnt.expected],
            },
            "by": _distances(self._asker or encoder),
            "drift": self.drift(),
            "images": self._pictures is not None,
            "keeps_points": self.store.keeps_points,
            "limits": self.limits.of_one_request(),
        }

    def drift(self) -> dict[str, Any] | None:
        """Recall of points that came in beside what the model promises; None if it does not."""
        encoder = self._encoders.get(self.store.fingerprint or "", self._encoder)
        change = self._incoming.drift(encoder) if _promises_recall(encoder) else None
        if change is None:
            return None
        expected, now = change.shares
        return {
            "points": self._incoming.n_points,
            "searched": change.now.n_base,
            "by": change.by,
            "expected": expected,
            "now": now,
            "change": change.change,
            "standard_error": change.error,
            "lower": change.lower,
        }

    def upsert(self, points: Sequence[NewPoint], fingerprint: str | None = None) -> int:
        """Put points in, all or none; when it returns, they are committed.

        `fingerprint` is of the model that made their codes; without, it is the store's.
        """
        ids = self._ids([point.id for point in points])
        twice = first_twice(ids)
        if twice is not None:
            raise invalid(f"points must not name an id twice, {twice!r} does")
        points = self._with_vectors(points)
        keeps = self.store.keeps_points
        if not keeps and any(point.payload is not None for point in points):
            raise invalid(f"a store of {self._engine} holds codes only, and no payloads")
        vectors = [point.vector for point in points] if keeps else None
        payloads = [point.payload for point in points] if keeps else None
        for _ in range(2):
            made_by = self.store.fingerprint
            self._check_model(fingerprint, made_by)
            codes = self._codes_of(points, made_by)
            model = made_by or fingerprint or self._fingerprint
            try:
                self.store.upsert(ids, codes, vectors, payloads, model)
                if any(map(_promises_recall, self._encoders.values())):
                    self._incoming.add([p.vector for p in points if p.vector is not None])
                return len(ids)
            except OtherModelError:
                continue  # the store has just been encoded again: so are these
            except ReencodingError as error:
                raise unavailable(
                    "the points are being encoded again by another model: until then, only "
                    "points with vectors, in a store that keeps them, can be put in",
                    REENCODING_SECONDS,
                ) from error
        raise unavailable("the model of the store has changed: try again")

    def delete(self, ids: Sequence[Id]) -> int:
        return self.store.delete(self._ids(ids))

    def point(self, name: Id) -> tuple[Id, Point]:
        """Return a point, with its id as the store has it."""
        points = self.store.read(self._ids([name]))
        if not points:
            raise RefusedError(404, f"there is no point {name}")
        return points.popitem()

    def _ids(self, ids: Sequence[Id]) -> AnyIds:
        """Return the ids of a request: digits are a number beside one, or if the store has numbers.

        The first points of a store are of the kind that they come as.
        """
        if all(isinstance(name, str) for name in ids) and self.store.id_type != "number":
            return checks.any_ids("ids", list(ids))
        return checks.any_ids("ids", [int(name) if _is_number(name) else name for name in ids])

    def encode(self, asked: Encode) -> dict[str, object]:
        """Return the codes of vectors or images, and the fingerprint of their model."""
        encoder = self._encoder_of(self.store.fingerprint)
        if encoder is None:
            raise invalid("the service has no model that encodes")
        if asked.images is not None:
            X = self._vectors_of_images(asked.images)
        else:
            X = self._matrix("vectors", asked.vectors or [], encoder)
        codes = [bytes(code).hex() for code in encoder.encode(X)]
        return {"codes": codes, "fingerprint": encoder.fingerprint}

    def query(self, asked: Queries) -> bytes:
        """Return the neighbours of each query, as JSON."""
        self._check_size(asked)
        for _ in range(2):
            try:
                with self.store.of_one_model() as made_by:
                    return self._query(asked, made_by)
            except ReencodingError:
                continue  # the query was encoded by the model before: once more
        raise unavailable("the model of the store has changed: ask again")

    def _query(self, asked: Queries, made_by: str | None) -> bytes:
        """Return the neighbours of each query, among codes that model `made_by` has made."""
        self._check_model(asked.fingerprint, made_by)
        queries, among = self._encoded(asked, made_by), self._among(asked.filter)
        answer = None
        for locked in (False, True):  # points are read after the search: none may change between
            with self.store.still() if locked else nullcontext():
                answer = self._answer(asked, queries, among, locked)
            if answer is not None:
                return answer
        raise unavailable("other programs changed the points during the query: ask again")

    def _metric(self, asked: Queries) -> Literal["euclidean", "cosine"]:
        """Return the metric of re-ranking: the request's, or else the model's."""
        by_cosine = self._encoder is not None and self._encoder.metric == "cosine"
        return asked.metric or ("cosine" if by_cosine else "euclidean")

    def _answer(
        self, asked: Queries, queries: QueryCodes, among: Among, locked: bool
    ) -> bytes | None:
        """Return the response; None if points have changed meanwhile, or need several reads.

        `locked` says that no other thread changes points: then they are read in parts.
        """
        near, rerank = self._near(asked, queries, among), asked.rerank is not None
        if not rerank and not asked.with_payload:
            return to_json(self._about(asked), near, None)
        pairs, payloads = Pairs.of(near), Payloads(among, self.limits.answer)
        parts = self.store.parts(pairs.ids, rerank, asked.with_payload)
        if len(parts) > 1 and not locked:
            return None
        payloads_later = rerank and len(parts) > 1  # and only those of the hits
        measured = np.empty(len(pairs))
        for part in deadline.each(parts):
            points = self.store.read(part, rerank, asked.with_payload and not payloads_later)
            here = pairs.within(part)
            if not pairs.take(here).fit(points, queries):
                return None
            if rerank:
                assert queries.vectors is not None
                metric = self._metric(asked)
                measured[here] = pairs.take(here).measured(points, queries.vectors, metric)
            if asked.with_payload and not payloads_later and not payloads.add(points):
                return None
        if rerank:
            kept = pairs.nearest(measured, DEFAULT_K if asked.k is None else asked.k)
            near = pairs.take(kept).apart(measured[kept], len(near))
            if (
                payloads_later
                and asked.with_payload
                and not self._read_payloads(pairs.take(np.sort(kept)), queries, payloads)
            ):
                return None
        if not asked.with_payload:
            return to_json(self._about(asked), near, None)
        payloads.check(near)
        return to_json(self._about(asked), near, payloads.texts)

    def _about(self, asked: Queries) -> dict[str, object]:
        """Return what the response says beside its results: how they were ordered."""
        by = asked.by if asked.rerank is None else self._metric(asked)
        about: dict[str, object] = {"by": by}
        if asked.by != HAMMING and not self.store.scans_tables:
            about["candidates"] = n_candidates(_n_wanted(asked))
        return about

    def _read_payloads(self, pairs: Pairs, queries: QueryCodes, payloads: Payloads) -> bool:
        """Read the payloads of hits in parts; False if the points have changed meanwhile."""
        for part in deadline.each(self.store.parts(pairs.ids, False, True)):
            points = self.store.read(part, False, True)
            if not pairs.take(pairs.within(part)).fit(points, queries) or not payloads.add(points):
                return False
        return True

    def _near(self, asked: Queries, queries: QueryCodes, among: Among) -> list[Neighbours]:
        """Return the nearest of each query, or all within a radius, up to the limit."""
        if asked.radius is None:
            hits: tuple[AnyArray, AnyIds]
            if queries.tables is None:
                hits = self.store.search(queries.codes, _n_wanted(asked), among)
            else:
                wanted = queries.tables, _n_wanted(asked), among, queries.codes
                hits = self.store.search_tables(*wanted)
            return [Neighbours(distances, ids) for distances, ids in zip(*hits, strict=True)]
        limit = self.limits.k if asked.limit is None else asked.limit
        # One more than the limit shows whether there are more, however many there are.
        hits = self.store.search(queries.codes, limit + 1, among)
        near = []
        for distances, ids in zip(*hits, strict=True):
            inside = int(np.searchsorted(distances, asked.radius, "right"))
            stop = min(inside, limit)
            near.append(Neighbours(distances[:stop], ids[:stop], inside > limit))
        return near

    def _check_size(self, asked: Queries) -> None:
        """Refuse too much work; each number of the request alone is within its limit."""
        queries = asked.vectors or asked.codes or asked.images or asked.ids or []
        limits = self.limits
        if asked.rerank is not None and not self.store.keeps_points:
            raise invalid(f"a store of {self._engine} holds codes only: it cannot re-rank")
        each = _n_wanted(asked)
        if asked.by != HAMMING:
            each = each if self.store.scans_tables else n_candidates(each)
            most = max(1, limits.tables // (4 * VALUES_PER_BYTE * n_bytes(self.store.n_bits)))
            if len(queries) > most:
                raise invalid(
                    f"{len(queries):,} queries by {asked.by} of {self.store.n_bits:,} bits are too "
                    f"many, at most {most:,}: ask in several requests"
                )
        if asked.radius is not None:
            each = limits.k if asked.limit is None else asked.limit
        if len(queries) > 1 and len(queries) * each > limits.found:
            raise invalid(
                f"{len(queries):,} queries for {each:,} each are too many, at most "
                f"{limits.found:,} together: ask for fewer, or in several requests"
            )

    def _among(self, chosen: Filter | None) -> Among:
        if chosen is None:
            return None
        if chosen.ids is not None:
            return self._ids(chosen.ids)
        assert chosen.field is not None
        values = chosen.values if chosen.value is None else [chosen.value]
        assert values is not None
        return Having(chosen.field, tuple(values))

    def _check_model(self, fingerprint: str | None, made_by: str | None) -> None:
        """Refuse codes of another model than that of the codes in the store."""
        expected = made_by or self._fingerprint
        if fingerprint is not None and expected not in (None, fingerprint):
            raise RefusedError(
                409,
                f"the codes were made by model {fingerprint}, and those in the store by model "
                f"{expected}: they cannot be compared",
            )

    def _encoder_of(self, made_by: str | None) -> "Model | None":
        """Return the model that made the codes in the store, or the only one if nobody knows."""
        if self._encoder is None or self._any_model or made_by is None:
            return self._encoder
        if made_by not in self._encoders:
            known = " and ".join(self._encoders)
            raise unavailable(
                f"the codes in the store are of model {made_by}, and the service has model "
                f"{known}: it has to be started with that model",
                REENCODING_SECONDS,
            )
        return self._encoders[made_by]

    def _asker_of(self, made_by: str | None) -> "Model | None":
        """Return the model that encodes vectors of queries for the codes in the store."""
        if self._asker is None:
            return self._encoder_of(made_by)
        if not self._any_model and made_by not in (None, self._asker.fingerprint):
            raise unavailable(
                f"the codes in the store are of model {made_by}, and the model of queries was "
                f"learnt for those of {self._asker.fingerprint}: the service has to be started "
                "with another",
                REENCODING_SECONDS,
            )
        return self._asker

    def _encoded(self, asked: Queries, made_by: str | None) -> QueryCodes:
        if asked.codes is not None:
            return QueryCodes(self._packed("codes", asked.codes))
        encoder = self._encoder_of(made_by) if asked.ids is None or asked.by != HAMMING else None
        if asked.ids is not None:
            vectors = asked.rerank is not None or asked.by != HAMMING
            points = self._queries_of_points(self._ids(asked.ids), vectors)
            return replace(points, tables=_tables(asked.by, points.vectors, encoder))
        if asked.images is not None:
            X = self._vectors_of_images(asked.images)
        else:
            assert asked.vectors is not None
            encoder = self._asker_of(made_by)
            X = self._matrix("vectors", asked.vectors, encoder)
            if asked.rerank is not None and encoder is self._asker is not None:
                raise invalid(
                    "queries of a model of their own have no distance from the points' vectors: "
                    'leave out "rerank"'
                )
        if encoder is None:
            raise invalid("vectors cannot be queries: the service has no model; give codes")
        return QueryCodes(encoder.encode(X), X, _tables(asked.by, X, encoder))

    def _vectors_of_images(self, images: Sequence[str]) -> Array:
        if self._pictures is None:
            raise invalid("images cannot be encoded: the model was not learnt from pictures")
        if len(images) > self.limits.images:
            raise invalid(f"a request has at most {self.limits.images} images, got {len(images)}")
        return self._pictures.vectors(images, self.limits)

    def _with_vectors(self, points: Sequence[NewPoint]) -> Sequence[NewPoint]:
        """Return the points with the vectors of their images."""
        images = [point.image for point in points if point.image is not None]
        if not images:
            return points
        vectors = iter(self._vectors_of_images(images).tolist())
        return [
            point if point.image is None else point.model_copy(update={"vector": next(vectors)})
            for point in points
        ]

    def _queries_of_points(self, ids: AnyIds, vectors: bool) -> QueryCodes:
        max_values = self.limits.values
        too_many = invalid(
            f"the vectors of the points must be at most {max_values:,} numbers together: "
            "ask in several requests"
        )
        if vectors and len(self.store.parts(ids, True, False, 8 * max_values)) > 1:
            raise too_many
        points, names = self.store.read(ids, vectors, False), ids.tolist()
        for name in names:
            if name not in points:
                raise RefusedError(404, f"there is no point {name}")
            if vectors and points[name].vector is None:
                raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
        codes = np.stack([points[name].code for name in names])
        present = [vector for name in names if (vector := points[name].vector) is not None]
        if len({len(vector) for vector in present}) > 1:
            raise RefusedError(409, "the points have vectors of different lengths")
        if sum(map(len, present)) > max_values:
            raise too_many
        return QueryCodes(codes, np.stack(present) if vectors else None)

    def _codes_of(self, points: Sequence[NewPoint], made_by: str | None) -> Packed:
        """Return the codes of points: the points' own, or else by the model of their vectors."""
        codes = np.zeros((len(points), n_bytes(self.store.n_bits)), np.uint8)
        with_code = [i for i, point in enumerate(points) if point.code is not None]
        without = [i for i, point in enumerate(points) if point.code is None]
        if with_code:
            codes[with_code] = self._packed("code", [points[i].code or "" for i in with_code])
        vectors = without or any(point.vector is not None for point in points)
        encoder = self._encoder_of(made_by) if vectors else None
        for point in points:
            self._check_length("vector", point.vector, encoder)
        if without:
            if encoder is None:
                raise invalid("a point needs a code: the service has no model that makes one")
            codes[without] = encoder.encode(
                np.array([points[i].vector for i in without], np.float64)
            )
        return codes

    def _matrix(
        self, name: str, vectors: Sequence[Sequence[float]], encoder: "Model | None"
    ) -> Array:
        for vector in vectors:
            self._check_length(name, vector, encoder)
        if len({len(vector) for vector in vectors}) > 1:
            raise invalid(f"{name} must be of the same length")
        return np.array(vectors, np.float64)

    def _check_length(
        self, name: str, vector: Sequence[float] | None, encoder: "Model | None"
    ) -> None:
        n, longest = _n_features(encoder), self.limits.dimensions
        if vector is None:
            return
        if n is not None and len(vector) != n:
            raise invalid(f"{name} must be {n:,} numbers, as the model takes, got {len(vector):,}")
        if n is None and len(vector) > longest:
            raise invalid(f"{name} must be at most {longest:,} numbers, got {len(vector):,}")

    def _packed(self, name: str, texts: Sequence[str]) -> Packed:
        width = n_bytes(self.store.n_bits)
        for text in texts:
            if len(text) != 2 * width:
                raise invalid(
                    f"{name} of {self.store.n_bits} bits must be {2 * width} hexadecimal digits, "
                    f"got {len(text)}"
                )
        rows = np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), width)
        try:
            return as_packed(rows, name, self.store.n_bits)
        except ValueError as error:
            raise invalid(str(error)) from error

    @property
    def _engine(self) -> str:
        return self.store.url.partition(":")[0]


def _check_asker(asker: "Model", encoder: "Model | None", any_model: bool) -> None:
    """Raise OtherModelError if the model of queries was not learnt for the codes of `encoder`."""
    if encoder is None:
        raise ValueError("a model of queries needs the model of the codes beside it")
    if asker.n_bits != encoder.n_bits:
        raise ValueError(
            f"the model of queries is for codes of {asker.n_bits} bits, and the model makes codes "
            f"of {encoder.n_bits}"
        )
    if not any_model and asker.fingerprint != encoder.fingerprint:
        raise OtherModelError(
            f"the model of queries was learnt for codes of model {asker.fingerprint}, and the "
            f"model is {encoder.fingerprint}"
        )


def _promises_recall(encoder: "Model | None") -> "TypeGuard[Model]":
    return encoder is not None and bool(encoder.learnt.expected)


def _n_features(encoder: "Model | None") -> int | None:
    return None if encoder is None else encoder.n_features


def _is_number(name: Id) -> bool:
    return isinstance(name, int) or (name.isascii() and name.isdecimal() and len(name) <= 19)


def _n_wanted(asked: Queries) -> int:
    """Return the number of neighbours to search for per query, without a radius."""
    return max(DEFAULT_K if asked.k is None else asked.k, asked.rerank or 0)


def _distances(encoder: "Model | None") -> list[str]:
    """Return the distances that a query can ask for."""
    if encoder is None:
        return [HAMMING]
    has_tables = encoder.table_function is not None
    return [HAMMING, "outputs", "tables"] if has_tables else [HAMMING, "outputs"]


def _model(encoder: "Model | Hasher") -> "Model":
    """Return the model of an estimator, which computes in its threads."""
    fitted: Model | None = getattr(encoder, "model_", None)
    return encoder if fitted is None else replace(fitted, n_jobs=encoder.n_jobs)


def _tables(by: str, X: Array | None, encoder: "Model | None") -> Tables | None:
    """Return the tables of queries, of their outputs or learnt ones; None for Hamming distances."""
    if by == HAMMING:
        return None
    if encoder is None:
        raise invalid(f"queries cannot be ordered by {by}: the service has no model")
    assert X is not None
    if X.shape[1] != (n := _n_features(encoder)):
        raise RefusedError(
            409, f"the vectors are of {X.shape[1]:,} numbers, and the model takes {n:,}"
        )
    if by not in _distances(encoder):
        raise invalid('the model has learnt no tables: "by": "outputs" ranks by its outputs')
    with np.errstate(over="ignore", invalid="ignore"):
        if by == "outputs":
            tables = tables_from_outputs(encoder.decision_function(X))
        else:
            tables = encoder.tables(X)
    try:
        return as_tables(tables, encoder.n_bits)
    except ValueError as error:
        raise invalid(f"{by}: {error}") from error
