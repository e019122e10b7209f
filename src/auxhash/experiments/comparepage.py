"""A comparison as a page: its table, precision over k and over bits, and what is retrieved."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from auxhash.compute import device as devices
from auxhash.compute.device import DeviceName
from auxhash.compute.words import count
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.compare import Compared, Comparison, compare_labels
from auxhash.experiments.comparison import several
from auxhash.experiments.entries import entries
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


def compare_on_page(
    asked: Compared,
    output: Path,
    head: PageHead,
    folder: str | Path | None = None,
    verbose: int = 1,
    device: DeviceName = "cpu",
) -> Comparison:
    """Train and measure every method; write a page about it to `output`."""
    k = several("k", asked.k, 1)
    n_base = len(asked.data.base)
    last = min(max(LAST_RANK, *k), n_base)
    more = [rank for rank in CURVE_RANKS if rank <= last and rank not in k]
    with _kept(folder) as kept:
        every = compare_labels(replace(asked, k=[*k, *more]), kept, verbose, device)
        galleries = _galleries(asked, Cells(kept), devices.get(device).name)
    comparison = every.at(k)
    content = FigureContent(
        (),
        [
            _table(comparison, head.note),
            *_curves(every, max((rank for rank in k if rank <= n_base), default=None)),
            *map_section(asked.data.base, asked.data.query),
        ],
        [(name, _in_words(value)) for name, value in comparison.protocol.items()],
        comparison.rows,
        galleries,
    )
    with writing(output) as temporary:
        text = page(head.name, head.title, head.about, content, head.command)
        temporary.write_text(text, "utf-8")
    return comparison


def _curves(every: Comparison, k: int | None) -> list[Section]:
    """Precision over rank for each number of bits; that at k over bits, if there are several."""
    over_k, over_bits = every.over_k(), every.over_bits(k)
    sections = [Section("Precision among the k nearest", [over_k])] if over_k else []
    return sections + ([Section("Precision over bits", [over_bits])] if over_bits else [])


def _galleries(asked: Compared, cells: Cells, device: DeviceName) -> list[Gallery]:
    """Pictures that each method retrieves with the most bits, if the data set has pictures."""
    data = asked.data
    if data.query.images is None:
        return []
    b, seed = max(several("bits", asked.bits, 1)), several("seeds", asked.seeds, 0)[0]
    mark = runs.data_identity(data)
    configurations = {
        entry.name: entry.configuration(mark, b, seed, device)
        for entry in entries(asked.methods, asked.shared)
    }
    codes = {name: cells.read(one)[1] for name, one in configurations.items() if one in cells}
    return [pictures(count(b, "bit"), data, codes, b)] if codes else []


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
