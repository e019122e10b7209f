"""NamedIndex: an index whose codes have names; `load` reads an index of any kind."""

import copy
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from auxhash.codes import as_packed
from auxhash.compute import checks
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.files.writing import check_regular, writing
from auxhash.search.index import file, listfile, namesfile, scan
from auxhash.search.index.approximate import ApproximateIndex
from auxhash.search.index.hamming import HammingIndex, matched
from auxhash.search.index.tables import TableDistances

NumberedIndex = HammingIndex | ApproximateIndex


class NamedIndex:
    """Codes with names (text) in place of ids, in an index of either kind.

    `index` must be empty at first, and is changed only by this object. It numbers the codes, and
    `called` turns its numbers into names. Any thread may call any method; calls wait for each
    other. Names and codes are saved in one file.

    >>> index = NamedIndex(HammingIndex(n_bits=3)).add([[1, 1, 1], [1, -1, -1]], ["a.png", "b.png"])
    >>> index.search([1, -1, -1], k=1)
    (array([[0]], dtype=int32), [['b.png']])
    """

    def __init__(self, index: NumberedIndex) -> None:
        if not isinstance(index, NumberedIndex):
            raise ArgumentError(
                f"index must be a HammingIndex or an ApproximateIndex, got {index!r}"
            )
        if len(index):
            raise ValueError("index must be empty, so that each of its codes gets a name")
        self.index = index
        self._names: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._using = threading.Lock()

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"NamedIndex({self.index!r})"

    def __getstate__(self) -> dict[str, object]:
        """Copy the index, at one moment, and its names."""
        with self._using:
            return {"index": copy.copy(self.index), "names": dict(self._names)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.index, self._names = state["index"], state["names"]
        self._numbers = {name: number for number, name in self._names.items()}
        self._using = threading.Lock()

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    @property
    def n_bits(self) -> int:
        return self.index.n_bits

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the model that makes the codes, which `index` keeps."""
        return self.index.fingerprint

    @fingerprint.setter
    def fingerprint(self, fingerprint: str | None) -> None:
        self.index.fingerprint = fingerprint

    @property
    def names(self) -> list[str]:
        """All names, in the order in which they were added."""
        with self._using:
            return list(self._numbers)

    def called(self, ids: Iterable[int]) -> list[str]:
        """Return the names of ids of `index`; -1, where a search found fewer, is left out."""
        return [self._names[i] for i in np.asarray(ids).tolist() if i >= 0]

    def add(self, codes: ArrayLike, names: Sequence[str]) -> Self:
        """Add codes under new names, one for each, of at most 1,024 bytes in UTF-8."""
        packed = as_packed(codes, n_bits=self.n_bits)
        new = checks.texts("names", names)
        if len(new) != len(packed):
            raise ArgumentError(
                f"names must be one for each of {len(packed)} codes, got {len(new)}"
            )
        with self._using:
            seen: set[str] = set()
            for name in new:
                if name in seen:
                    raise ArgumentError(f"names must not name a code twice, {name!r} does")
                if name in self._numbers:
                    raise ArgumentError(f"names must be new, {name!r} is taken")
                seen.add(name)
            first = self.index.next_id
            self.index.add(packed)
            self._names |= {first + i: name for i, name in enumerate(new)}
            self._numbers |= {name: first + i for i, name in enumerate(new)}
        return self

    def remove(self, names: Sequence[str]) -> int:
        """Remove the codes of these names and return their number; unknown names are ignored."""
        wanted = checks.texts("names", names)
        with self._using:
            gone = {name: self._numbers[name] for name in wanted if name in self._numbers}
            count = self.index.remove(list(gone.values()))
            for name, number in gone.items():
                del self._names[number], self._numbers[name]
        return count

    def search(self, codes: ArrayLike, k: int) -> tuple[scan.Distances, list[list[str]]]:
        """Return distances, as the index's `search` does, and the names of the hits, per query."""
        with self._using:
            distances, ids = self.index.search(codes, k)
            return distances, [self.called(row) for row in ids]

    def search_tables(self, tables: ArrayLike, k: int) -> tuple[TableDistances, list[list[str]]]:
        """Return distances, as the index's `search_tables` does, and the names of the hits."""
        with self._using:
            distances, ids = self.index.search_tables(tables, k)
            return distances, [self.called(row) for row in ids]

    def radius_search(
        self, codes: ArrayLike, r: int
    ) -> tuple[list[scan.Distances], list[list[str]]]:
        """Return distances and names of all codes at distance r or less, per query."""
        with self._using:
            distances, ids = self.index.radius_search(codes, r)
            return distances, [self.called(row) for row in ids]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes and names to one file, all or nothing; `namesfile` has the format."""
        with self._using, writing(Path(path)) as temporary:
            self.index.save(temporary)
            namesfile.append(temporary, self._names)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        n_probe: int = 16,
        n_jobs: int | None = None,
        fingerprint: str | None = None,
    ) -> "NamedIndex":
        """Read a file of `save`, and check all of it. `n_probe` is for an approximate index.

        `fingerprint` is that of the queries' model, as in `HammingIndex.load`.
        """
        check_regular(path, "an index")
        names, size = namesfile.read(path)
        index: NumberedIndex
        if _is_lists(path):
            index = ApproximateIndex._of(listfile.read(path, None, size), n_probe)
        else:
            index = HammingIndex._of(file.read(path, mmap=True, size=size))
        index.n_jobs = n_jobs
        if set(index.ids.tolist()) != set(names):
            raise ValueError(f"{path} is damaged: its names are not those of its codes")
        index.fingerprint = matched(path, index.fingerprint, fingerprint)
        named = cls.__new__(cls)
        named.__setstate__({"index": index, "names": names})
        return named


AnyIndex = HammingIndex | ApproximateIndex | NamedIndex


def load(
    path: str | os.PathLike[str],
    n_probe: int = 16,
    n_jobs: int | None = None,
    fingerprint: str | None = None,
) -> AnyIndex:
    """Read an index of any kind: exact or approximate (its `n_probe`), with names or without.

    `fingerprint` is that of the queries' model, as in `HammingIndex.load`.
    """
    check_regular(path, "an index")
    if namesfile.has_names(path):
        return NamedIndex.load(path, n_probe, n_jobs, fingerprint)
    if _is_lists(path):
        approximate = ApproximateIndex.load
        return approximate(path, n_probe=n_probe, n_jobs=n_jobs, fingerprint=fingerprint)
    return HammingIndex.load(path, n_jobs=n_jobs, fingerprint=fingerprint)


def is_index(path: str | os.PathLike[str]) -> bool:
    """Return True if a file begins like an index of any kind."""
    with open(path, "rb") as content:
        return content.read(len(file.MAGIC)) == file.MAGIC or _is_lists(path)


def _is_lists(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as content:
        return content.read(len(listfile.KIND)) == listfile.KIND
