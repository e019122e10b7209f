"""Inputs of commands: points, labels, codes and pairs, in files and folders.

Estimators and pictures are imported where they are needed: a command that reads codes starts
without scikit-learn.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from auxhash.cli import kinds
from auxhash.cli.options import Reading
from auxhash.cli.output import tell
from auxhash.codes import Packed, as_packed, common_bits
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray
from auxhash.compute.fingerprint import OtherModelError, match
from auxhash.compute.words import count
from auxhash.files import codefiles, report, rows, tables
from auxhash.files.rows import Rows
from auxhash.files.tables import HeaderChoice
from auxhash.files.writing import destination

if TYPE_CHECKING:
    from auxhash.files.images import ImageFeature, ImageFolder
    from auxhash.model.model import Model
    from auxhash.search.index.named import AnyIndex
    from auxhash.stores.points import Payload


class NoCodesError(ValueError):
    """A file of something else, where codes are needed."""


def points(path: str, reading: Reading) -> Rows:
    """Points to learn from."""
    if not Path(path).is_dir():
        return _announced(_in_file(path, reading))
    from auxhash.files import images

    folder = images.image_folder(path)
    return _announced(rows.of_images(folder, images.feature_for(folder, reading.own)))


def points_for(model: "Model", path: str, reading: Reading) -> Rows:
    """Points for a model: of pictures the same features, of tables the same columns."""
    if not Path(path).is_dir():
        named = model.feature_names is not None
        return _announced(_of_columns(_in_file(path, reading), model), not named)
    if model.image_feature is None:
        raise ValueError(f"{path} is a folder, and the model was not learnt from pictures")
    from auxhash.files import images

    folder = images.image_folder(path)
    return _announced(rows.of_images(folder, images.remembered(model.image_feature, reading.own)))


def labels(path: str, reading: Reading) -> AnyArray:
    """The labels in a file."""
    return _one_per_point(path, reading.label, reading, "labels")


def _one_per_point(path: str, column: str, reading: Reading, what: str) -> AnyArray:
    part = tables.take_labels(path, column, what, reading.header)
    tell(report.labels_line(path, part, what))
    return part.values


def labels_of(points: Rows, path: str | None, reading: Reading) -> AnyArray | None:
    """Labels from a file of their own, or else those that came with the points, if any."""
    if path is None:
        return points.labels
    if points.read_labels is not None:
        tell(f"{points.name}: its own labels are not used")
    known = labels(path, reading)
    if len(known) != len(points):
        raise ValueError(
            f"{points.name} holds {count(len(points), 'point')}, but {path} "
            f"{count(len(known), 'label')}{_header_hint(path, len(known), len(points))}"
        )
    return known


def _header_hint(path: str, n_read: int, n: int) -> str:
    """Ask, where a text file holds one row more or less than n, what its first line is."""
    if abs(n_read - n) == 1 and Path(path).suffix in (".csv", ".txt"):
        return " (does line 1 name the column? --header or --no-header says so)"
    return ""


def needed_labels(points: Rows, path: str | None, option: str, reading: Reading) -> AnyArray:
    """`labels_of`, but it raises if there are none; `option` says how to give them."""
    labels = labels_of(points, path, reading)
    if labels is None and points.names is not None:
        raise ValueError(
            f"{points.name} holds {count(len(points), 'picture')}, such as {points.names[0]}, and "
            f"no classes: put them into one folder per class, or give {option}"
        )
    if labels is None:
        raise ValueError(f"{points.name} holds no labels called {reading.label!r}: give {option}")
    return labels


def labels_to_learn(points: Rows, path: str | None, option: str, reading: Reading) -> AnyArray:
    """`needed_labels`, but it raises if all pictures are in one folder, of one class."""
    labels = needed_labels(points, path, option, reading)
    if path is None and points.names is not None and (labels == labels[0]).all():
        raise ValueError(
            f"{points.name} holds {count(len(points), 'picture')}, all in the folder {labels[0]}, "
            f"and two classes or more are needed: give the folder that holds one folder per class, "
            f"or {option}"
        )
    return labels


def codes(path: str, n_bits: int | None, single: bool = False) -> tuple[Packed, int, str | None]:
    """Packed codes of a file, their number of bits, and the fingerprint of their model if stated.

    A .npy file states neither bits nor model. With `single`, an array of one axis is one code.
    """
    return codes_and_ids(path, n_bits, single)[:3]


def codes_and_ids(
    path: str, n_bits: int | None, single: bool = False
) -> tuple[Packed, int, str | None, AnyArray | None]:
    """`codes`, and the ids that a folder of them has, as `encode` writes it of many files."""
    stated: int | None
    if Path(path).is_dir() or "://" in path:
        from auxhash.files.shards import coding

        array, stated, fingerprint, called = coding.read(path)
        tell(f"{path}: {count(len(array), 'code')} with ids of their own")
    else:
        (array, stated, fingerprint), called = codefiles.read(path), None
    if stated is not None and n_bits not in (None, stated):
        raise ValueError(
            f"{path} holds codes of {count(stated, 'bit')}, and codes of {n_bits} are needed"
        )
    n_bits = n_bits if stated is None else stated
    if single and array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or not array.size or array.dtype.kind not in "iu":
        raise NoCodesError(
            f"{path} holds no codes (packed uint8, or -1 and +1): "
            f"it is {array.dtype} of shape {array.shape}; `auxhash encode` makes codes of features"
        )
    if n_bits is None:
        n_bits = common_bits(codes=array)
    return as_packed(array, path, n_bits), n_bits, fingerprint, called


def same_model(
    first: str, fingerprint: str | None, second: str, other: str | None, any_model: bool
) -> str | None:
    """`match`, for commands that have --any-model: its error names the option."""
    try:
        return match(first, fingerprint, second, other, any_model)
    except OtherModelError as error:
        raise OtherModelError(f"{error} (--any-model, if you know better)") from error


def own_ids(path: str, reading: Reading) -> AnyArray | None:
    """Ids of the points in a table (a column) or of pictures (their names), if there are any."""
    if not Path(path).is_dir():
        there = tables.column_names(path, reading.header)
        columns = report.id_columns(there, reading.id_column, path)
        if not columns:
            return None
        reading = replace(reading, id_column=columns[0])
    values = checks.any_ids(f"ids of {path}", ids(path, reading))
    different, times = np.unique(values, return_counts=True)
    if (times > 1).any():
        twice = different[times > 1][0]
        raise ValueError(f"{path}: ids must be different, and {twice} is that of two points")
    return values


def payloads(
    path: str, columns: list[str], header: HeaderChoice = None
) -> "Sequence[Payload] | None":
    """Columns of a table as payloads, one per row, without what is missing; None for no columns."""
    from auxhash.stores.points import as_payloads

    if not columns:
        return None
    table = tables.read_columns(path, columns, header)
    read = [
        {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        for row in zip(*table.values(), strict=True)
    ]
    as_payloads(read, len(read))  # refused now, and not when a store has been made
    return read


def ids(path: str, reading: Reading) -> AnyArray:
    """Ids of codes, numbers or text; for a folder, the names of its pictures."""
    if Path(path).is_dir():
        return np.array(names(path))
    values = _one_per_point(path, reading.ids, reading, "ids")
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def called_by(
    path: str | None,
    own: AnyArray | None,
    n: int,
    reading: Reading,
    as_text: bool = False,
    what: str = "codes",
) -> AnyArray | None:
    """Ids of n codes, or of `what` else: those of a file, or else their `own`, if any.

    `as_text` keeps digits as they are, for an index or a store whose ids are text.
    """
    if path is None:
        return own.astype(np.str_) if as_text and own is not None else own
    read = np.array(text_ids(path, reading)) if as_text else ids(path, reading)
    if len(read) != n:
        hint = _header_hint(path, len(read), n)
        raise ValueError(f"{path} holds {count(len(read), 'id')}, and there are {n:,} {what}{hint}")
    return read


def text_ids(path: str, reading: Reading) -> list[str]:
    """Ids of codes as text, even where they could be read as numbers."""
    if Path(path).is_dir():
        return names(path)
    part = tables.take_names(path, reading.header, reading.ids)
    tell(report.labels_line(path, part, "ids"))
    return list(part.values)


def vectors(path: str, header: HeaderChoice) -> tuple[AnyArray, list[str] | None]:
    """Vectors (n, D), and what their columns are called.

    They are mapped where the file can be: only some of their rows will be read.
    """
    X, columns, _ = _vectors(path, Reading(header=header), None)
    return X, columns


def vectors_and_ids(
    path: str, reading: Reading, without: list[str]
) -> tuple[AnyArray, AnyArray | None]:
    """`vectors` of a table, of all columns but some, and its ids if it has a column of them."""
    X, columns, read_ids = _vectors(path, reading, None)
    if columns is not None:
        X = np.take(X, [i for i, name in enumerate(columns) if name not in without], axis=1)
    return tables.check_finite(X, path), None if read_ids is None else read_ids()


def finite_vectors(path: str, reading: Reading, names: list[str] | None = None) -> AnyArray:
    """Vectors without NaN or infinity, of columns with these names if both have names."""
    return tables.check_finite(_vectors(path, reading, names)[0], path)


def texts(source: str, path: str, n: int, header: HeaderChoice = None) -> list[str]:
    """Texts of n points: the lines of a file, or a column of the points' own file."""
    if Path(source).suffix == ".txt":  # commas are part of the text
        listed = tables.checked_path(source, "text", (".txt",)).read_text("utf-8").splitlines()
    elif ".npy" in (Path(source).suffix, "" if Path(source).is_file() else Path(path).suffix):
        raise ValueError(f"a .npy file holds no texts: --text takes a .txt file, {n:,} lines")
    elif Path(source).is_file():
        listed = names(source, header)
    else:
        listed = [str(value) for value in tables.take_labels(path, source, "text", header).values]
    if len(listed) != n:
        raise ValueError(f"{source} holds {len(listed):,} texts, and there are {count(n, 'point')}")
    return listed


def vectors_by_id(
    path: str,
    reading: Reading,
    names: list[str] | None,
    index: "AnyIndex",
    model: "Model | None" = None,
) -> "AnyArray | PictureVectors | ById":
    """Vectors of the points of an index, to be taken by its numbers; as `vectors` otherwise.

    A column of ids says which row is whose, and so do the names of a folder's pictures, whose
    features are those of the model. Without ids, row i is that of number i.
    """
    from auxhash.search.index import NamedIndex

    X: AnyArray | PictureVectors
    if Path(path).is_dir():
        X = _pictures(path, model, reading.own)
        read_ids = X.names if isinstance(index, NamedIndex) else None
    else:
        X, _, read_ids = _vectors(path, reading, names)
    named = isinstance(index, NamedIndex)
    numbers: AnyArray = index.index.ids if isinstance(index, NamedIndex) else index.ids
    all_there = bool((numbers < len(X)).all())
    by_row = all_there and bool((np.diff(numbers) > 0).all())
    if read_ids is None:
        if not all_there:
            raise ValueError(
                f"{path}: row i is taken for id i, and there is no row for id {numbers.max()}: "
                "the rows of all ids, or a table with a column of them (--id), would do"
            )
        if not (named or by_row):
            tell(f"{path}: row i is taken for id i, and the index has other ids than 0, 1, 2, ...")
        return X
    ids = read_ids()
    if by_row and not named:  # they may be row numbers, or ids
        if not np.array_equal(ids, np.arange(len(X))):
            raise ValueError(
                f"{path}: row i is taken for the code of number i, and its column of ids has "
                "another order: put the rows into that of the codes, or leave the column out"
            )
        return X
    return _joined(path, X, ids, index, numbers)


def _pictures(path: str, model: "Model | None", own: str | None) -> "PictureVectors":
    """The features of a folder's pictures that the model was learnt from."""
    from auxhash.files import images

    if model is None or model.image_feature is None:
        raise ValueError(f"{path} is a folder, and only a --model of pictures knows their features")
    folder = images.image_folder(path)
    tell(str(folder))
    return PictureVectors(folder, images.remembered(model.image_feature, own))


class PictureVectors:
    """Features of a folder's pictures, each computed when it is first asked for."""

    def __init__(self, folder: "ImageFolder", feature: "ImageFeature") -> None:
        self.folder, self.feature = folder, feature
        self.computed: dict[int, AnyArray] = {}  # by row

    def __len__(self) -> int:
        return len(self.folder)

    def __getitem__(self, rows: AnyArray) -> AnyArray:
        wanted = rows.tolist()
        new = [row for row in dict.fromkeys(wanted) if row not in self.computed]
        if new:
            vectors = self.feature.of([self.folder.paths[row] for row in new])
            self.computed.update(zip(new, vectors, strict=True))
        return np.stack([self.computed[row] for row in wanted])

    def names(self) -> AnyArray:
        """Return what the pictures are called."""
        return np.array(self.folder.names)


def _joined(
    path: str,
    X: "AnyArray | PictureVectors",
    ids: AnyArray,
    index: "AnyIndex",
    numbers: AnyArray,
) -> "ById":
    """Match the rows to the points of the index, by their ids."""
    from auxhash.search.index import NamedIndex

    called = index.called(numbers.tolist()) if isinstance(index, NamedIndex) else numbers.tolist()
    place = {str(each): row for row, each in enumerate(ids)}
    if len(place) < len(ids):
        raise ValueError(f"{path}: an id is that of two rows: which of them is meant?")
    absent = [each for each in called if str(each) not in place]
    if absent:
        raise ValueError(f"{path}: {count(len(absent), 'id')} of the index not there: {absent[0]}")
    order = np.argsort(numbers)
    return ById(X, numbers[order], np.array([place[str(each)] for each in called])[order])


class ById:
    """Vectors whose row `rows[i]` is that of number `numbers[i]`, which rise."""

    def __init__(self, X: "AnyArray | PictureVectors", numbers: AnyArray, rows: AnyArray) -> None:
        self.X, self.numbers, self.rows = X, numbers, rows

    def __getitem__(self, numbers: AnyArray) -> AnyArray:
        return self.X[self.rows[np.searchsorted(self.numbers, numbers)]]


def _vectors(
    path: str, reading: Reading, names: list[str] | None
) -> tuple[AnyArray, list[str] | None, Callable[[], AnyArray] | None]:
    """Vectors, what their columns are called, and what reads their ids if there are any."""
    header, id_column = reading.header, reading.id_column
    features = tables.take_features(path, role="vectors", header=header, id_column=id_column)
    X = tables.check_features(features.X, path)
    tell(report.features_line(path, len(X), X.shape[1], X.dtype, features.how))
    if names is None or features.columns is None or names == features.columns:
        return X, features.columns, features.read_ids
    places = report.places(names, features.columns, path, "the queries have")
    return np.take(X, places, axis=1), names, features.read_ids


def output_path(
    path: str,
    kind: str | None,
    *made_from: str | None,
    suffixes: tuple[str, ...] = (),
    force: bool = False,
) -> Path:
    """The path, if it can be written to and is none of the files that it is made from.

    What is there must be of the same `kind` (`kinds.MODEL`, ...) or empty, unless `force`; None
    leaves that to whoever reads it. Checked before an hour of work, not after.
    """
    target = Path(path).expanduser()
    real = os.path.realpath
    if any(other and real(target) == real(Path(other).expanduser()) for other in made_from):
        raise ValueError(f"{path} is what the file is made from, and would be lost")
    if suffixes and target.suffix not in suffixes:
        raise ValueError(f"{path} must end in {' or '.join(suffixes)}")
    destination(target)
    if kind is not None and not force and target.exists() and target.stat().st_size:
        there = kinds.kind_of(target)
        if there != kind:
            raise ValueError(
                f"{path} is {there}, and {kind} would take its place: give another name, or --force"
            )
    return target


def pairs(path: str, header: HeaderChoice = None) -> tables.PairColumns:
    """Pairs of points, and how similar they are."""
    columns = tables.read_pairs(path, header)
    tell(f"{path}: {count(len(columns[0]), 'pair')}")
    return columns


def names(path: str, header: HeaderChoice = None, column: str = "name") -> list[str]:
    """Names: from a list, or from a folder of pictures."""
    if Path(path).is_dir():
        from auxhash.files import images

        return images.image_folder(path).names
    listed = tables.read_names(path, header, column)
    few = ", ".join(listed[:2])
    tell(f"{path}: {count(len(listed), 'name')}: {few}{', ...' if len(listed) > 2 else ''}")
    return listed


def comparable(asked: AnyArray, searched: AnyArray) -> None:
    """Raise if one side's labels are text and the other's numbers: none would be the same."""
    if (asked.dtype.kind in "US") != (searched.dtype.kind in "US"):
        kinds = report.kind(asked), report.kind(searched)
        raise ValueError(
            f"labels of queries are {kinds[0]} and those of the base {kinds[1]}: none are the same"
        )
    if asked.ndim == searched.ndim == 1 and not np.isin(asked, searched).any():
        tell("no label of the queries is one of the base's: nothing can be right")


def _in_file(path: str, reading: Reading) -> Rows:
    if reading.own is not None:
        raise ValueError(f"--features is for folders of pictures, and {path} is none")
    return rows.of_file(path, reading.label, reading.header, reading.id_column)


def _of_columns(points: Rows, model: "Model") -> Rows:
    """The columns that the model was learnt from, by name where both have names."""
    if model.feature_names is None:
        return points
    names_are_checked_here()
    names = list(model.feature_names)
    if points.columns is None:
        note = f"columns without names, taken for {report.columns(names)} of the model"
        return replace(points, summary=report.joined(points.summary, note), columns=names)
    return points.of_columns(names)


def names_are_checked_here() -> None:
    """Let scikit-learn be silent on arrays, where a model's columns have names."""
    warnings.filterwarnings("ignore", "X does not have valid feature names")


def _announced(points: Rows, doubt: bool = True) -> Rows:
    tell(report.joined(points.summary, points.doubt if doubt else ""))
    return points
