"""The demonstration: several methods on scikit-learn's handwritten digits."""

from pathlib import Path
from tempfile import TemporaryDirectory

from auxhash import datasets
from auxhash.datasets.dataset import Dataset
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.compare import Comparison, compare
from auxhash.experiments.entries import Shared, entries
from auxhash.experiments.figures.figure import FigureContent, Section, Table
from auxhash.experiments.figures.styles import style
from auxhash.experiments.gallery import pictures
from auxhash.experiments.page import page
from auxhash.experiments.svg import Plot, Series
from auxhash.storage.encoding import Arrays
from auxhash.storage.files import writing

# The paper's two-step method and its MAC, what is best here, and three to be measured against.
METHODS = ("cut", "MACcut", "MACrefined", "ITQ", "CCAITQ", "OneHot")
PAIRS = 100, 500
K = (10, 100)
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ABOUT = """\
L(h) is the loss that cut, MACcut and MACrefined minimise; p@k the share of a query's k nearest that
are the same digit, mAP the same over all ranks; b_eff how many bits are effective. cut is two-step
hashing, MACcut the paper's method, MACrefined what MACHash does by default; ITQ knows no labels,
CCAITQ is its supervised form, and OneHot takes a classifier's answer as the code."""


def run(
    n_bits: int, seed: int, output: Path, n_jobs: int | None = None, verbose: int = 1
) -> Comparison:
    """Train and measure every method; write a page about it to `output`."""
    data = datasets.load("digits", seed=seed)
    with TemporaryDirectory() as folder:
        # The second call trains nothing: it reads the runs of the first.
        found, curve = (
            compare(
                data, METHODS, (n_bits,), (seed,), k, "ksh", *PAIRS, folder, n_jobs, verbose=shown
            )
            for k, shown in ((K, verbose), (CURVE, 0))
        )
        codes = _codes(data, n_bits, seed, Cells(folder))
    content = FigureContent(
        (),
        [_table(found), _precision(curve)],
        [(name, str(value)) for name, value in found.protocol.items()],
        found.rows,
        [pictures(f"{n_bits} bits", data, codes, n_bits)],
    )
    command = f"auxhash demo --bits {n_bits} --seed {seed}"
    with writing(output) as temporary:
        about = f"Several methods learn {n_bits}-bit codes of the same images."
        text = page("auxhash demo", "Codes for handwritten digits", about, content, command)
        temporary.write_text(text, "utf-8")
    return found


def _codes(data: Dataset, n_bits: int, seed: int, cells: Cells) -> dict[str, Arrays]:
    mark = runs.data_identity(data)
    return {
        entry.name: cells.read(entry.configuration(mark, n_bits, seed))[1]
        for entry in entries(METHODS, Shared("ksh", *PAIRS))
    }


def _table(found: Comparison) -> Section:
    names = [name for name in found.rows[0] if name not in ("seed", "bits", "own", "failed")]
    rows = [
        [f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in names]
        for row in found.rows
    ]
    return Section("The methods", table=Table(names, rows), note=ABOUT)


def _precision(curve: Comparison) -> Section:
    series = [
        Series(row["method"], style(row["method"]), CURVE, [row[f"p@{k}"] for k in CURVE])
        for row in curve.rows
    ]
    plot = Plot("Precision among the k nearest", "k", "precision", series, x_log=True)
    return Section("Precision", [plot])
