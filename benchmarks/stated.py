"""The speeds that README and documentation state, from stored results: python -m benchmarks.stated.

Writes docs/tables/speed.md, every row of every machine in docs/results/bench, docs/tables/floor.md,
how far these are from their floors, and the table between the marks in README.md: five of these
rows, of one machine. Where nothing is stored, README stays as it is.
"""

from collections.abc import Sequence
from typing import Any

from benchmarks import floors, speed
from benchmarks.rows import HEADINGS, Row

TABLE = speed.ROOT / "docs" / "tables" / "speed.md"
FLOOR = TABLE.with_name("floor.md")
README = speed.ROOT / "README.md"
BEGIN, END = "<!-- speeds: python -m benchmarks.stated -->", "<!-- end of speeds -->"
IN_README = (
    "10 nearest of 1,000,000 codes, one query",
    "encoding 100,000 points of 320 features, 64 bits, float32",
    "fit by default, 10,000 x 784 MNIST pixels, 32 bits",
    "one MAC iteration, descent, 10,000 x 320 CIFAR GIST, 48 bits",
    "evaluation, 2,000 queries, 58,000 codes: all k, all radii, mAP, bits",
)

Results = Sequence[tuple[dict[str, Any], list[Row]]]


def main() -> None:
    results = speed.read()
    TABLE.write_text(page(results), "utf-8")
    FLOOR.write_text(floor(results), "utf-8")
    README.write_text(readme(results, README.read_text("utf-8")), "utf-8")


def page(results: Results) -> str:
    """Every machine with what it is, what its cores can do, and all rows."""
    if not results:
        return "No full run is stored yet: `make bench`.\n"
    return "\n".join(_machine(about, rows, full=True) for about, rows in results)


def floor(results: Results) -> str:
    """Distance of the parts of every machine from their floors."""
    return "\n".join(
        f"**{speed.title(about)}.**\n\n{floors.table(about, rows)}" for about, rows in results
    )


def readme(results: Results, text: str) -> str:
    """The README's text with the table between its marks made anew, of the last machine."""
    if not results:
        return text
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    about, rows = results[-1]
    by_name = {row.what: row for row in rows}
    table = _machine(about, [by_name[what] for what in IN_README], full=False)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _machine(about: dict[str, Any], rows: Sequence[Row], full: bool) -> str:
    lines = [f"**{speed.title(about)}.**", ""]
    if full:
        is_ = about["machine"]
        versions = ", ".join(f"{name} {number}" for name, number in is_["libraries"].items())
        rates = ", ".join(f"{name}: {rate:g}" for name, rate in about["rates"].items())
        lines = [lines[0] + f" Python {is_['python']}, {versions}, {', '.join(is_['blas'])};"]
        lines += [f"load before the run {is_['load']}. One core, {rates}.", ""]
    headings = HEADINGS if full else HEADINGS[:4]
    lines += [_line(headings), "|" + "---|" * len(headings)]
    lines += [_line(row.cells()[: len(headings)]) for row in rows]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
