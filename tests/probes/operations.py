"""Random operations of the index and the metrics, held against plain definitions."""

from pathlib import Path
from typing import Any

import numpy as np

from tests import oracle


def index_operations(seed: int, folder: Path) -> None:
    """add, remove, search, radius search, save and load of a HammingIndex, against a dictionary."""
    from auxhash import HammingIndex

    rng = np.random.default_rng(seed)
    n_bits = int(rng.choice([1, 3, 8, 13, 64, 70]))
    index, codes_by_id = HammingIndex(n_bits), {}  # id: packed code
    next_id = 0
    for step in range(int(rng.integers(5, 25))):
        action = rng.integers(6)
        if action <= 1:
            new = _codes(rng, int(rng.integers(0, 12)), n_bits)
            ids = None
            if rng.random() < 0.5:
                free = np.setdiff1d(np.arange(60), list(codes_by_id))
                ids = rng.permutation(free)[: len(new)]
                new = new[: len(ids)]
            index.add(new, ids)
            new_ids = range(next_id, next_id + len(new)) if ids is None else ids.tolist()
            codes_by_id |= dict(zip(new_ids, new, strict=True))
            next_id = max([next_id, *(number + 1 for number in new_ids)])
        elif action == 2:
            gone = rng.integers(0, 60, int(rng.integers(0, 6)))
            known = {int(number) for number in gone} & set(codes_by_id)
            assert index.remove(gone) == len(known)
            for number in known:
                del codes_by_id[number]
        elif action == 3 and rng.random() < 0.5:
            path = folder / f"{step}.index"
            index.save(path)
            index = HammingIndex.load(path, mmap=bool(rng.integers(2)))
        elif codes_by_id:
            _compare(index, codes_by_id, _codes(rng, 3, n_bits), rng)
        assert index.ids.tolist() == list(codes_by_id)
        assert len(index) == len(codes_by_id)


def _compare(
    index: Any, codes_by_id: dict[int, Any], queries: Any, rng: np.random.Generator
) -> None:
    base, names = np.array(list(codes_by_id.values())), np.array(list(codes_by_id))
    k, r = int(rng.integers(1, 80)), int(rng.integers(0, index.n_bits + 1))
    distance, order = oracle.nearest(queries, base, min(k, len(base)))
    hits = index.search(queries, k)
    np.testing.assert_array_equal(hits[0], distance)
    np.testing.assert_array_equal(hits[1], names[order])
    distance, order = oracle.nearest(queries, base, len(base))
    near = index.radius_search(queries, r)
    for q in range(len(queries)):
        inside = distance[q] <= r
        np.testing.assert_array_equal(near[0][q], distance[q][inside])
        np.testing.assert_array_equal(near[1][q], names[order[q][inside]])


def metric_cases(seed: int, folder: Path) -> None:
    """precision_at_k with labels of every kind, against its definition, or a refusal."""
    from auxhash.search import metrics

    rng = np.random.default_rng(seed)
    n_bits = int(rng.choice([1, 4, 8, 20]))
    queries, base = _codes(rng, 4, n_bits), _codes(rng, 15, n_bits)
    kind = rng.integers(4)
    if kind == 0:
        wanted, labels = rng.integers(0, 3, 4), rng.integers(0, 3, 15)
        relevant = wanted[:, None] == labels
    elif kind == 1:
        wanted, labels = rng.integers(0, 2, (4, 3)), rng.integers(0, 2, (15, 3))
        relevant = wanted @ labels.T > 0
    elif kind == 2:
        wanted, labels = rng.choice(list("abc"), 4), rng.choice(list("abc"), (15, 1))
        relevant = wanted[:, None] == labels[:, 0]
    else:
        wanted, labels = rng.integers(0, 2, 4).astype(float), rng.integers(0, 2, 15).astype(float)
        labels[3] = np.nan
        try:
            metrics.precision_at_k(queries, base, wanted, labels, 5)
        except ValueError:
            return
        raise AssertionError("missing labels were accepted")
    k = int(rng.integers(1, 16))
    precision = metrics.precision_at_k(queries, base, wanted, labels, k)
    np.testing.assert_allclose(precision, oracle.precision(queries, base, relevant, k), atol=1e-12)


def _codes(rng: np.random.Generator, n: int, n_bits: int) -> Any:
    """Packed codes, many of them equal."""
    few = rng.integers(0, 2, (4, n_bits))
    bits = np.where(
        rng.random((n, 1)) < 0.5, few[rng.integers(0, 4, n)], rng.integers(0, 2, (n, n_bits))
    )
    return np.packbits(bits, axis=1, bitorder="little")
