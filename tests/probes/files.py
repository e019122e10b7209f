"""Damaged files of every format that we read: the old answer, a clear error, never a crash.

A format makes a small file and reads it. Formats with a checksum must give what was written or
refuse; the others may give what the bytes now say, but nothing else than ValueError or OSError.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.probes.mutations import mutate

N, D = 6, 3


class Format(NamedTuple):
    name: str
    make: Callable[[Path, np.random.Generator], None]
    read: Callable[[Path], Any]
    checked: bool = False  # whether the format has a checksum


def _points(rng: np.random.Generator) -> Any:
    return rng.normal(size=(N, D)).astype(np.float32)


def _npy(path: Path, rng: np.random.Generator) -> None:
    np.save(path, _points(rng))


def _npz(path: Path, rng: np.random.Generator) -> None:
    save = np.savez_compressed if rng.random() < 0.5 else np.savez
    save(path, X=_points(rng), y=np.arange(N), other=np.zeros(100))


def _csv(path: Path, rng: np.random.Generator) -> None:
    rows = [
        ",".join(f"{value:.4f}" for value in row) + f",{n % 2}"
        for n, row in enumerate(_points(rng))
    ]
    path.write_text("\n".join(["a,b,c,y", *rows]))


def _parquet(path: Path, rng: np.random.Generator) -> None:
    import pyarrow
    from pyarrow import parquet

    lists = pyarrow.array(list(_points(rng)), pyarrow.list_(pyarrow.float32()))
    parquet.write_table(pyarrow.table({"id": range(N), "x": lists, "y": [0, 1] * (N // 2)}), path)


def _fvecs(path: Path, rng: np.random.Generator) -> None:
    rows = (struct.pack("<i", D) + row.astype("<f4").tobytes() for row in _points(rng))
    path.write_bytes(b"".join(rows))


def _picture(kind: str) -> Callable[[Path, np.random.Generator], None]:
    def make(path: Path, rng: np.random.Generator) -> None:
        from PIL import Image

        pixels = rng.integers(0, 256, (12, 10, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(path, kind)

    return make


def _read_table(path: Path) -> Any:
    from auxhash.files import rows

    points = rows.of_file(path)
    return points.all(), points.labels


def _read_picture(path: Path) -> Any:
    from auxhash.files import images

    feature = images.gist_feature(16)
    return feature.of([path])


def _fingerprint(rng: np.random.Generator) -> str | None:
    return None if rng.random() < 0.5 else rng.bytes(8).hex()


def _codes(path: Path, rng: np.random.Generator) -> None:
    from auxhash.files import codefiles

    codes = rng.integers(0, 16, (N, 2)).astype(np.uint8)
    codefiles.write(path, N, 12, _fingerprint(rng), [codes])


def _read_codes(path: Path) -> Any:
    from auxhash.cli import inputs

    return inputs.codes(str(path), None)


def _index(path: Path, rng: np.random.Generator) -> None:
    from auxhash import HammingIndex

    n_bits = int(rng.integers(1, 40))
    codes = rng.choice([-1, 1], (20, n_bits)).astype(np.int8)
    ids = None if rng.random() < 0.5 else rng.permutation(100)[:20]
    HammingIndex(n_bits, fingerprint=_fingerprint(rng)).add(codes, ids).save(path)


def _read_index(path: Path) -> Any:
    from auxhash import HammingIndex

    index = HammingIndex.load(path, mmap=True)
    near = index.radius_search(index.packed[:3], 3)
    return (
        index.n_bits,
        index.fingerprint,
        index.packed,
        index.ids,
        *index.search(index.packed[:3], 5),
        *near[0],
        *near[1],
    )


def _approximate(path: Path, rng: np.random.Generator) -> None:
    from auxhash import ApproximateIndex

    codes = rng.integers(0, 256, (40, 2)).astype(np.uint8)
    ApproximateIndex(16, 4, 4, fingerprint=_fingerprint(rng)).add(codes).save(path)


def _read_approximate(path: Path) -> Any:
    from auxhash import ApproximateIndex

    index = ApproximateIndex.load(path, n_probe=4)
    stated = index.n_bits, index.fingerprint
    return *stated, len(index), *index.search(np.zeros((2, 2), np.uint8), 40)


def _named(path: Path, rng: np.random.Generator) -> None:
    from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex

    codes = rng.integers(0, 256, (40, 2)).astype(np.uint8)
    kind = HammingIndex if rng.random() < 0.5 else ApproximateIndex
    index = NamedIndex(kind(16, fingerprint=_fingerprint(rng)))
    index.add(codes, [f"n{i}" for i in range(40)]).save(path)


def _read_named(path: Path) -> Any:
    from auxhash.search.index import NamedIndex

    index = NamedIndex.load(path)
    stated = index.n_bits, index.fingerprint
    return *stated, *index.names, *index.search(np.zeros((2, 2), np.uint8), 40)


def _model(path: Path, rng: np.random.Generator) -> None:
    fitted(rng).save(path)


def fitted(rng: np.random.Generator) -> Any:
    """A small fitted model of some kind."""
    from sklearn.linear_model import LogisticRegression

    from auxhash import MACHash
    from auxhash.learn import baselines

    X, y = rng.normal(size=(40, D)), np.arange(40) % 3
    seed = int(rng.integers(100))
    quick = {"n_bits": 3, "n_similar": 3, "n_dissimilar": 5, "max_iter": 2, "refine": None}
    made = [
        lambda: MACHash(**quick, random_state=seed),
        lambda: MACHash(**quick, hash_function="rbf", random_state=seed),
        lambda: MACHash(**quick, hash_function="network", random_state=seed),
        lambda: MACHash(**quick, hash_function=LogisticRegression(), random_state=seed),
        lambda: baselines.ITQ(n_bits=2, random_state=seed),
        lambda: baselines.KSH(n_bits=3, n_anchors=10, max_iter=3, random_state=seed),
        lambda: baselines.SPH(n_bits=3, max_iter=3, random_state=seed),
        lambda: baselines.OneHot(n_bits=3, random_state=seed),
        lambda: baselines.AGH(n_bits=3, layers=2, n_anchors=8, random_state=seed),
        lambda: baselines.SH(n_bits=3),
    ]
    return made[int(rng.integers(len(made)))]().fit(X, y)


def _read_model(path: Path) -> Any:
    import auxhash

    hasher = auxhash.load(path)
    return hasher.get_params()["n_bits"], hasher.encode(
        np.random.default_rng(0).normal(size=(9, D))
    )


FORMATS = [
    Format("a.npy", _npy, _read_table),
    Format("a.npz", _npz, _read_table),
    Format("a.csv", _csv, _read_table),
    Format("a.parquet", _parquet, _read_table),
    Format("a.fvecs", _fvecs, _read_table),
    Format("a.png", _picture("PNG"), _read_picture),
    Format("a.jpg", _picture("JPEG"), _read_picture),
    Format("a.gif", _picture("GIF"), _read_picture),
    Format("a.bmp", _picture("BMP"), _read_picture),
    Format("codes.safetensors", _codes, _read_codes),
    Format("a.index", _index, _read_index, checked=True),
    Format("a.faiss", _approximate, _read_approximate, checked=True),
    Format("a.names", _named, _read_named, checked=True),
    Format("a.safetensors", _model, _read_model, checked=True),
]


def damaged(seed: int, folder: Path) -> None:
    """One damaged file of each format in turn."""
    rng = np.random.default_rng(seed)
    form = FORMATS[seed % len(FORMATS)]
    path = folder / form.name
    form.make(path, rng)
    written = form.read(path)
    data = path.read_bytes()
    changed = mutate(data, rng)
    path.write_bytes(changed)
    error, content = _attempt(form, path)
    if error is not None:
        assert "\n" not in error, f"more than one line: {error}"
        return
    assert not form.checked or changed == data or same(written, content), form.name


def _attempt(form: Format, path: Path) -> tuple[str | None, Any]:
    """Return what a refusal says, or else what was read."""
    try:
        return None, form.read(path)
    except (ValueError, OSError) as error:
        return str(error), None


def same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def forged_index(seed: int, folder: Path) -> None:
    """An index file with right sums and wrong content: refused, or searched as it says."""
    from auxhash import HammingIndex
    from auxhash.search.index import file
    from tests import oracle

    rng = np.random.default_rng(seed)
    n_bits, n = int(rng.integers(0, 70)), int(rng.integers(0, 30))
    width = int(rng.integers(0, 10)) if rng.random() < 0.3 else -(-n_bits // 8)
    planes = rng.integers(0, 256, (width, n)).astype(np.uint8)
    if rng.random() < 0.5 and width and n_bits % 8:
        planes[-1] &= (1 << n_bits % 8) - 1
    ids = rng.integers(-2, 40, n) if rng.random() < 0.6 else None
    next_id = int(rng.integers(0, 50)) if rng.random() < 0.9 else 2**64 - 1
    path = folder / "a.index"
    try:
        file.write(path, file.IndexContent(n_bits, planes, ids, next_id))
    except ValueError:
        return
    for check in (True, False):
        try:
            index = HammingIndex.load(path, check=check)
            queries = rng.integers(0, 256, (3, -(-index.n_bits // 8))).astype(np.uint8)
            if n_bits % 8:
                queries[:, -1] &= (1 << n_bits % 8) - 1
            distances, hits = index.search(queries, 10)
        except ValueError:
            continue
        # Where planes of another width happen to fill as many bytes, the header says what they are.
        base = planes.T if width == queries.shape[1] else index.packed
        expected = oracle.nearest(queries, base, 10)
        np.testing.assert_array_equal(distances, expected[0])
        names = np.arange(n) if ids is None else ids
        np.testing.assert_array_equal(hits, names[expected[1]])


def forged_model(seed: int, folder: Path) -> None:
    """A model file with a right sum and wrong content: refused, or one that encodes."""
    import auxhash
    from auxhash.model import modelfile

    rng = np.random.default_rng(seed)
    path = folder / "a.safetensors"
    fitted(rng).save(path)
    content = modelfile.read(path)
    arrays = {name: np.array(array) for name, array in content.arrays.items()}
    coded = content.content
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5 and arrays:
            name = sorted(arrays)[int(rng.integers(len(arrays)))]
            arrays[name] = _changed(arrays[name], rng)
        else:
            coded = _rewritten(coded, rng)
    try:
        modelfile.write(path, content._replace(content=coded, arrays=arrays))
    except (ValueError, TypeError, OverflowError):  # what no file can hold
        return
    try:
        hasher = auxhash.load(path)
        points = rng.normal(size=(5, hasher.n_features_in_))
        outputs = hasher.decision_function(points)
    except ValueError:
        return
    assert not np.isnan(outputs).any()
    assert hasher.encode(points).shape == (5, -(-hasher.n_bits // 8))
    hasher.save(path)
    auxhash.load(path)


def _changed(array: Any, rng: np.random.Generator) -> Any:
    kind = int(rng.integers(6))
    if kind == 0 and array.size:
        flat = array.reshape(-1).copy()
        extremes = [np.nan, np.inf, -1, 0, 1e308] if array.dtype.kind == "f" else [0, 255, 127]
        flat[int(rng.integers(len(flat)))] = np.asarray(rng.choice(extremes)).astype(array.dtype)
        return flat.reshape(array.shape)
    if kind == 1:
        return array[: len(array) // 2] if array.ndim else array
    if kind == 2:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 3:
        return array[:0] if array.ndim else array
    if kind == 4:
        return array.reshape(-1)
    return array.astype(rng.choice(["float32", "int8", "uint8", "float64"]))


def _rewritten(coded: Any, rng: np.random.Generator) -> Any:
    """The JSON with one leaf, key or item replaced."""
    if isinstance(coded, dict) and coded and rng.random() < 0.95:
        key = sorted(coded)[int(rng.integers(len(coded)))]
        if rng.random() < 0.1:
            return {name: value for name, value in coded.items() if name != key}
        return {**coded, key: _rewritten(coded[key], rng)}
    if isinstance(coded, list) and coded and rng.random() < 0.95:
        at = int(rng.integers(len(coded)))
        if rng.random() < 0.1:
            return coded[:at] + coded[at + 1 :]
        return [*coded[:at], _rewritten(coded[at], rng), *coded[at + 1 :]]
    values = [
        None,
        True,
        -1,
        0,
        1,
        2,
        8.0,
        1e9,
        2**70,
        "linear",
        "",
        [],
        {},
        {"float": "nan"},
        "x" * 99,
    ]
    return values[int(rng.integers(len(values)))]
