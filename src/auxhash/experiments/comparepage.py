"""A comparison as a page: its table, precision over k and over bits, and what is retrieved."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from auxhash.compute import device as devices
from auxhash.compute.device import DeviceName
from auxhash.compute.words import count
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.compare import Comparison, compare_labels
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.entries import Methods, Shared, entries
from auxhash.experiments.figures.figure import FigureContent, Section, Table
from auxhash.experiments.gallery import Gallery, pictures
from auxhash.experiments.mappage import map_section
from auxhash.experiments.page import page
from auxhash.files.writing import writing

CURVE_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
LAST_RANK = 100  # of the curves, unless a larger one is asked for


@dataclass(frozen=True)
class PageHead:
    """Title and introduction of a page; `command` is what made it."""

    name: str
    title: str
    about: str
    command: str
    note: str = ""


@dataclass(frozen=True)
class Compared:
    """Arguments of a comparison, as `compare` takes them."""

    data: Dataset
    methods: Methods
    bits: Sequence[int]
    seeds: Sequence[int]
    k: Sequence[int]
    loss: Any = "ksh"
    n_similar: int | None = 100
    n_dissimilar: int | None = 500

    def run(
        self,
        output: Path,
        head: PageHead,
        folder: str | Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 1,
        device: DeviceName = "cpu",
    ) -> Comparison:
        """Train and measure every method; write a page about it to `output`."""
        with _kept(folder) as kept:
            every = compare_labels(
                self.data,
                self.methods,
                self.bits,
                self.seeds,
                [*self.k, *(k for k in self._ranks() if k not in self.k)],
                self.loss,
                self.n_similar,
                self.n_dissimilar,
                kept,
                n_jobs,
                verbose,
                device,
            )
            galleries = self._galleries(Cells(kept), devices.get(device).name)
        comparison = every.at(self.k)
        content = FigureContent(
            (),
            [
                _table(comparison, head.note),
                *self._curves(every),
                *map_section(self.data.base, self.data.query, n_jobs=n_jobs),
            ],
            [(name, _in_words(value)) for name, value in comparison.protocol.items()],
            comparison.rows,
            galleries,
        )
        with writing(output) as temporary:
            text = page(head.name, head.title, head.about, content, head.command)
            temporary.write_text(text, "utf-8")
        return comparison

    def _ranks(self) -> list[int]:
        """Ranks of the curves: up to the largest asked for, within the base."""
        last = min(max(LAST_RANK, *self.k), len(self.data.base))
        return [k for k in CURVE_RANKS if k <= last]

    def _curves(self, every: Comparison) -> list[Section]:
        """Precision over k for each number of bits; over bits, if there are several."""
        over_k = every.over_k()
        k = max((k for k in self.k if k <= len(self.data.base)), default=None)
        over_bits = every.over_bits(k)
        sections = [Section("Precision among the k nearest", [over_k])] if over_k else []
        return sections + ([Section("Precision over bits", [over_bits])] if over_bits else [])

    def _galleries(self, cells: Cells, device: Any) -> list[Gallery]:
        """Pictures that each method retrieves with the most bits, if the data set has pictures."""
        if self.data.query.images is None:
            return []
        b, seed, mark = max(self.bits), self.seeds[0], runs.data_identity(self.data)
        shared = Shared(self.loss, self.n_similar, self.n_dissimilar)
        configurations = {
            entry.name: entry.configuration(mark, b, seed, device)
            for entry in entries(self.methods, shared)
        }
        codes = {name: cells.read(one)[1] for name, one in configurations.items() if one in cells}
        return [pictures(count(b, "bit"), self.data, codes, b)] if codes else []


@contextmanager
def _kept(folder: str | Path | None) -> Iterator[str | Path]:
    """The folder for runs; without one, a folder that goes away with the runs in it."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        yield temporary


def _table(comparison: Comparison, note: str) -> Section:
    columns, rows = comparison.texts()
    note = " ".join([comparison.legend, note])
    return Section("The methods", table=Table(columns, rows), note=note)


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
