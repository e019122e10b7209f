"""Tables of text: .csv and .txt files, and which of their cells are numbers.

A cell that a conversion would change stays text: 007, 1_1 and 9223372036854775808 are names. The
first line holds the columns' names only where there is no doubt about it. Lines are counted and
columns of text read by Python's csv, numbers by NumPy, each straight from the file: a table of text
in memory would take many times its size. 38 MB of numbers take 1.7 s and 66 MB with the start of
the program; pyarrow takes 1.0 s and 236 MB, and cannot tell which cells a conversion would change.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, starmap
from pathlib import Path

import numpy as np

from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.files import report

DELIMITERS = ",;\t"
ENCODING = "utf-8-sig"  # with or without a byte order mark
NUMERAL = frozenset("0123456789+-.eE")  # what else float() accepts is no number here
MISSING = frozenset(("", "na", "n/a", "nan", "-nan", "null", "none", "inf", "-inf"))
INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # as str() writes it
ROW = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")  # the number of a point, perhaps written as a float
MAX_EXACT = 2**53  # whole numbers up to it are exact as floats
MIN_NUMBERED_COLUMNS = 3  # from which on a first line 0, 1, 2, ... is likely to be names


@dataclass(frozen=True, eq=False)
class Text:
    """A table of text; columns without names are called 0, 1, ..."""

    path: Path
    delimiter: str
    names: list[str]
    n: int  # rows, without that of names
    first: int  # the line where row 0 begins, from 1
    header: bool  # whether line 1 holds the names
    sure: bool  # whether the user said so

    @property
    def how(self) -> str:
        """The first line, in words: names of the columns, or none."""
        return "line 1 names the columns" if self.header else "no line of names"

    def numbers(self, columns: Sequence[int]) -> Array:
        """Columns of finite numbers (n, columns)."""
        try:
            X = np.loadtxt(
                self.path,
                comments=None,
                delimiter=self.delimiter,
                skiprows=self.first - 1,
                usecols=columns,
                ndmin=2,
                encoding=ENCODING,
                max_rows=self.n,
                quotechar='"',
            )
        except ValueError:
            raise self._no_number(columns) from None
        if not np.isfinite(X).all():
            raise self._no_number(columns)
        return X

    def points(self, column: int) -> Numbers:
        """A column of whole numbers, exactly."""

        def point(line: int, cell: str) -> int:
            if match := ROW.fullmatch(cell):
                return int(match[1])
            raise ValueError(
                f"{self.path}: {self.names[column]} must be whole numbers, the rows of the two "
                f"points; line {line} has {cell!r}"
            )

        return np.fromiter(starmap(point, self._cells(column)), np.int64, self.n)

    def text(self, column: int) -> list[str]:
        """A column as it stands; no cell of it may be empty."""
        cells = []
        for line, cell in self._cells(column):
            if not cell:
                raise ValueError(f"{self._place(line, column)} is empty")
            cells.append(cell)
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
            line, cell = next(row for row in self._cells(column) if row[1] in missing)
            place = self._place(line, column)
            raise ValueError(f"{place}: {cell!r} is no label{self._doubt(line)}")
        return np.array(cells)

    def cells(self, column: int) -> list[int | float | str | None]:
        """A column of numbers where all its cells are, or else text; None for an empty cell."""
        cells = [cell for _, cell in self._cells(column)]
        kinds = {cell for cell in cells if cell}
        kind = int if all(map(_is_int64, kinds)) else float if all(map(_is_float64, kinds)) else str
        return [kind(cell) if cell else None for cell in cells]

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each row."""
        return islice(_records(self.path, self.delimiter), self.header, self.header + self.n)

    def _cells(self, column: int) -> Iterator[tuple[int, str]]:
        """Line and cell of each row, without the spaces around it."""
        return ((line, cells[column].strip()) for line, cells in self._rows())

    def _place(self, line: int, column: int) -> str:
        return f"{self.path}: line {line}, column {self.names[column]!r}"

    def _no_number(self, columns: Sequence[int]) -> ValueError:
        line, column, cell = next(
            (line, column, cell)
            for line, cells in self._rows()
            for column in columns
            if not is_number(cell := cells[column].strip())
        )
        hint = self._doubt(line)
        if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", cell):
            hint = " (decimals are written with a point)"
        elif any(mark in cell for mark in DELIMITERS):
            hint = " (is that what separates the cells?)"
        elif (
            self.header
            and line == self.first
            and cell[:1].isalpha()
            and cell.lower() not in MISSING
        ):
            hint = f" (if these are names of the points: --id {self.names[column]})"
        return ValueError(f"{self._place(line, column)}: {_short(cell)} is no number{hint}")

    def _doubt(self, line: int) -> str:
        """A hint that --header makes line 1 a line of names, if that may be the mistake."""
        known = line > self.first or self.header or self.sure
        return "" if known else " (if line 1 holds names: --header)"


def read_text(path: Path, label: str | None, header: bool | None, only: bool = False) -> Text:
    """The table of a file, checked for its form; cells are read when they are asked for.

    Args:
        label: the name of the column of labels, if there can be one.
        header: whether line 1 holds the columns' names. None decides by its cells: it does if
            `label` is among them or if none of them is a number; with `only`, a single column
            has a name only if that is `label`.
        only: whether the file holds only labels or names: then the first may be any text.

    Raises ValueError for what is no such table.
    """
    try:
        delimiter = _delimiter(path)
        names, n, second = _measure(path, delimiter)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a {path.suffix} file: {error}") from error
    sure = header is not None
    if header is None:
        header = _are_names(path, names, label, only)
    if not header:
        numbered = [str(column) for column in range(len(names))]
        return Text(path, delimiter, numbered, n, 1, False, sure)
    if twice := [name for name in names if names.count(name) > 1 and name]:
        raise ValueError(f"{path} has two columns called {twice[0]!r}")
    if "" in names:
        raise ValueError(
            f"{path}: column {names.index('') + 1} has no name in line 1; the row numbers that "
            "pandas writes so are no features: to_csv(index=False)"
        )
    if n == 1:
        raise ValueError(f"{path} has a line of names and nothing below it")
    return Text(path, delimiter, names, n - 1, second, True, sure)


def read_features(
    path: Path, label: str, header: bool | None, id_column: report.IdColumns = report.IDS
) -> report.Features:
    """All columns but `label` and those of ids; they must be of numbers."""
    text = read_text(path, label, header)
    passed = [name for name in report.id_columns(text.names, id_column, path) if name != label]
    kept = [at for at, name in enumerate(text.names) if name != label and name not in passed]
    if not kept:
        raise ValueError(f"{path} holds no features, but only {', '.join(text.names)}")
    X = text.numbers(kept)
    labels, labels_note = None, ""
    if label in text.names:
        labels = partial(text.values, text.names.index(label))
        labels_note = f"labels: column {label}"
    used = [text.names[at] for at in kept]
    of = report.columns(used) if text.header else ""
    how = report.joined(of, labels_note, report.passed_over(passed), text.how)
    columns = used if text.header else None
    doubt = report.doubtful(used, bool(labels_note))
    ids = partial(text.values, text.names.index(passed[0])) if passed else None
    return report.Features(X, labels, how, columns, doubt, ids)


def is_number(cell: str) -> bool:
    """Return True if a cell is a finite decimal number, written with a point."""
    try:
        return NUMERAL.issuperset(cell) and bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _is_int64(cell: str) -> bool:
    return bool(INTEGER.fullmatch(cell)) and len(cell) < 21 and -(2**63) <= int(cell) < 2**63


def _is_float64(cell: str) -> bool:
    if _is_int64(cell):
        return abs(int(cell)) <= MAX_EXACT
    return is_number(cell) and repr(float(cell)) == cell


def _are_names(path: Path, first: list[str], label: str | None, only: bool) -> bool:
    """Return True if the first line holds the columns' names."""
    if label and label in first and not is_number(label):
        return True
    if only and len(first) == 1:  # several columns need names, a single one does not
        return False
    if len(first) >= MIN_NUMBERED_COLUMNS and first == [*map(str, range(len(first)))]:
        raise ValueError(
            f"{path}: line 1 counts 0, 1, 2, ...: say whether these are names of columns or "
            "numbers (--header or --no-header)"
        )
    named = any(cell.lower() not in MISSING for cell in first)
    return named and not any(is_number(cell) for cell in first)


def _measure(path: Path, delimiter: str) -> tuple[list[str], int, int]:
    """The first record, the number of records, and the line where the second begins.

    Raises ValueError unless all have equally many cells; empty lines may stand at the end.
    """
    first: list[str] = []
    n = second = empty = 0
    for line, cells in _records(path, delimiter):
        if len(cells) < 2 and not "".join(cells).strip():
            empty = empty or line
            continue
        if empty:
            raise ValueError(f"{path}: line {empty} is empty, and others follow")
        if not n:
            first = [cell.strip() for cell in cells]
        if len(cells) != len(first):
            raise ValueError(
                f"{path} must have as many columns in every line: line 1 has {len(first)}, "
                f"line {line} has {len(cells)}"
            )
        second = line if n == 1 else second
        n += 1
    if not n:
        raise ValueError(f"{path} is empty")
    return first, n, second


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record, with the number of the line where it begins."""
    with path.open(encoding=ENCODING, newline="") as text:
        reader = csv.reader(_without_nul(text), delimiter=delimiter, strict=True)
        line = 1
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise csv.Error("it holds a NUL byte, which is no text")
        yield line


def _delimiter(path: Path) -> str:
    """Choose the delimiter with most cells in line 1; in a tie, one with as many in all lines."""
    widths = {mark: _width(path, mark) for mark in DELIMITERS}
    most = max(widths.values())
    if most < 2:
        return DELIMITERS[0]
    tied = [mark for mark in DELIMITERS if widths[mark] == most]
    if len(tied) > 1:
        even = [mark for mark in tied if _is_even(path, mark)]
        if len(even) != 1:
            every = " or ".join(map(repr, tied))
            raise ValueError(f"{path}: it is not clear whether {every} separates the cells")
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
