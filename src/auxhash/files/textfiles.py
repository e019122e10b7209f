"""Tables of text: .csv and .txt files, and which of their cells are numbers.

A cell that a conversion would change stays text: 007, 1_1 and 9223372036854775808 are names. The
first line holds the columns' names only where there is no doubt about it.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray
from auxhash.files import taken

DELIMITERS = ",;\t"
NUMERAL = frozenset("0123456789+-.eE")  # what else float() accepts is no number here
MISSING = frozenset(("", "na", "n/a", "nan", "-nan", "null", "none", "inf", "-inf"))
WHOLE = re.compile(r"0|-?[1-9][0-9]*")  # as str() writes it
ROW = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")  # the number of a point, perhaps written as a float
EXACT = 2**53  # whole numbers up to it are exact as floats
COUNTED = 3  # from so many columns on, a first line 0, 1, 2, ... is likely to be names


@dataclass(frozen=True, eq=False)
class Text:
    """A table of text; columns without names are called 0, 1, ..."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    lines: list[int]  # where each row begins in the file, from 1
    header: bool  # whether line 1 holds the names
    sure: bool  # whether the user said so

    @property
    def how(self) -> str:
        """What the user is told about the first line."""
        return "line 1 names the columns" if self.header else "no line of names"

    def numbers(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Columns of finite numbers (n, columns)."""
        try:
            X = np.array([[float(row[column]) for column in columns] for row in self.rows])
        except ValueError:
            raise self._no_number(columns) from None
        used = ("".join([row[column] for column in columns]) for row in self.rows)
        plain = all(map(NUMERAL.issuperset, used))
        if not (plain and np.isfinite(X).all()):
            raise self._no_number(columns)
        return X

    def points(self, column: int) -> NDArray[np.int64]:
        """A column of whole numbers, exactly."""
        found = [ROW.fullmatch(row[column]) for row in self.rows]
        if None in found:
            at = found.index(None)
            raise ValueError(
                f"{self.path}: {self.names[column]} must be whole numbers, the rows of the two "
                f"points; line {self.lines[at]} has {self.rows[at][column]!r}"
            )
        return np.array([int(match[1]) for match in found if match], np.int64)

    def text(self, column: int) -> list[str]:
        """A column as it stands; no cell of it may be empty."""
        cells = [row[column] for row in self.rows]
        if "" in cells:
            raise ValueError(f"{self._place(cells.index(''), column)} is empty")
        return cells

    def values(self, column: int) -> AnyArray:
        """A column of labels: int64 or float64 where these print as the cells do, or else text."""
        cells = self.text(column)
        kinds = set(cells)
        if all(_is_int64(cell) for cell in kinds):
            return np.array([int(cell) for cell in cells], np.int64)
        if all(map(_is_float64, kinds)) and len(set(map(float, kinds))) == len(kinds):
            return np.array([float(cell) for cell in cells], np.float64)
        missing = {cell for cell in kinds if cell.lower() in MISSING}
        if missing and len(missing) < len(kinds) and all(map(is_number, kinds - missing)):
            at = next(at for at, cell in enumerate(cells) if cell in missing)
            place = self._place(at, column)
            raise ValueError(f"{place}: {cells[at]!r} is no label{self._doubt(at)}")
        return np.array(cells)

    def _place(self, at: int, column: int) -> str:
        return f"{self.path}: line {self.lines[at]}, column {self.names[column]!r}"

    def _no_number(self, columns: Sequence[int]) -> ValueError:
        at, column = next(
            (at, column)
            for at, row in enumerate(self.rows)
            for column in columns
            if not is_number(row[column])
        )
        cell = self.rows[at][column]
        hint = self._doubt(at)
        if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", cell):
            hint = " (decimals are written with a point)"
        elif any(mark in cell for mark in DELIMITERS):
            hint = " (is that what separates the cells?)"
        return ValueError(f"{self._place(at, column)}: {_short(cell)} is no number{hint}")

    def _doubt(self, at: int) -> str:
        """A hint that --header makes line 1 a line of names, if that may be the mistake."""
        return "" if at or self.header or self.sure else " (if line 1 holds names: --header)"


def read_text(path: Path, label: str | None, header: bool | None, only: bool = False) -> Text:
    """The cells of a file, without the spaces around them.

    Args:
        label: the name of the column of labels, if there can be one.
        header: whether line 1 holds the columns' names. None decides by its cells: it does if
            `label` is among them or if none of them is a number; with `only`, a single column
            has a name only if that is `label`.
        only: whether the file holds only labels or names: then the first may be any text.

    Raises ValueError for what is no such table.
    """
    lines, rows = _table(path)
    sure = header is not None
    if header is None:
        header = _are_names(path, rows[0], label, only)
    if not header:
        return Text(path, [str(column) for column in range(len(rows[0]))], rows, lines, False, sure)
    names = rows[0]
    if twice := [name for name in names if names.count(name) > 1 and name]:
        raise ValueError(f"{path} has two columns called {twice[0]!r}")
    if "" in names:
        raise ValueError(
            f"{path}: column {names.index('') + 1} has no name in line 1; the row numbers that "
            "pandas writes so are no features: to_csv(index=False)"
        )
    if len(rows) == 1:
        raise ValueError(f"{path} has a line of names and nothing below it")
    return Text(path, names, rows[1:], lines[1:], True, sure)


def read_features(path: Path, label: str, header: bool | None) -> taken.Features:
    """All columns but `label` and id; they must be of numbers."""
    text = read_text(path, label, header)
    passed = [name for name in text.names if taken.is_id(name) and name != label]
    kept = [at for at, name in enumerate(text.names) if name != label and name not in passed]
    if not kept:
        raise ValueError(f"{path} holds no features, but only {', '.join(text.names)}")
    X = text.numbers(kept)
    labels, said = None, ""
    if label in text.names:
        labels, said = partial(text.values, text.names.index(label)), f"labels: column {label}"
    used = [text.names[at] for at in kept]
    of = taken.columns(used) if text.header else ""
    how = taken.joined(of, said, taken.passed_over(passed), text.how)
    columns = used if text.header else None
    doubt = taken.doubtful(used, bool(said))
    ids = partial(text.values, text.names.index(passed[0])) if passed else None
    return taken.Features(X, labels, how, columns, doubt, ids)


def is_number(cell: str) -> bool:
    """Whether a cell is a finite decimal number, written with a point."""
    try:
        return NUMERAL.issuperset(cell) and bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _is_int64(cell: str) -> bool:
    return bool(WHOLE.fullmatch(cell)) and len(cell) < 21 and -(2**63) <= int(cell) < 2**63


def _is_float64(cell: str) -> bool:
    if _is_int64(cell):
        return abs(int(cell)) <= EXACT
    return is_number(cell) and repr(float(cell)) == cell


def _are_names(path: Path, first: list[str], label: str | None, only: bool) -> bool:
    """Whether a first line holds the columns' names."""
    if label and label in first and not is_number(label):
        return True
    if only and len(first) == 1:  # several columns need names, a single one does not
        return False
    if len(first) >= COUNTED and first == [str(column) for column in range(len(first))]:
        raise ValueError(
            f"{path}: line 1 counts 0, 1, 2, ...: say whether these are names of columns or "
            "numbers (--header or --no-header)"
        )
    named = any(cell.lower() not in MISSING for cell in first)
    return named and not any(is_number(cell) for cell in first)


def _table(path: Path) -> tuple[list[int], list[list[str]]]:
    """Line numbers and cells of all lines, which must have equally many cells."""
    try:
        found = list(_records(path, _delimiter(path)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a {path.suffix} file: {error}") from error
    while found and _is_blank(found[-1][1]):
        found.pop()
    if not found:
        raise ValueError(f"{path} is empty")
    width = len(found[0][1])
    for line, cells in found:
        if _is_blank(cells):
            raise ValueError(f"{path}: line {line} is empty, and others follow")
        if len(cells) != width:
            raise ValueError(
                f"{path} must have as many columns in every line: line 1 has {width}, "
                f"line {line} has {len(cells)}"
            )
    return [line for line, _ in found], [cells for _, cells in found]


def _is_blank(cells: list[str]) -> bool:
    return cells in ([], [""])


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record, with the number of the line where it begins."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(_without_nul(text), delimiter=delimiter, strict=True)
        line = 1
        for cells in reader:
            yield line, [cell.strip() for cell in cells]
            line = reader.line_num + 1


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise csv.Error("it holds a NUL byte, which is no text")
        yield line


def _delimiter(path: Path) -> str:
    """What cuts line 1 into the most cells; in a tie, what cuts all lines into equally many."""
    widths = {mark: _width(path, mark) for mark in DELIMITERS}
    most = max(widths.values())
    if most < 2:
        return DELIMITERS[0]
    tied = [mark for mark in DELIMITERS if widths[mark] == most]
    if len(tied) > 1:
        even = [mark for mark in tied if _is_even(path, mark)]
        if len(even) != 1:
            every = " or ".join(map(repr, tied))
            raise ValueError(f"{path}: it cannot be told whether {every} separates the cells")
        tied = even
    return tied[0]


def _width(path: Path, delimiter: str) -> int:
    """Number of cells in the first record; 0 if this delimiter makes it unreadable."""
    try:
        return len(next(_records(path, delimiter), (1, []))[1])
    except csv.Error:
        return 0


def _is_even(path: Path, delimiter: str) -> bool:
    try:
        return len({len(cells) for _, cells in _records(path, delimiter) if cells}) == 1
    except csv.Error:
        return False


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:40] + "...")
