"""Parts of the program beside what they cannot do without: reads or products alone.

The rates are those of one core in the stored run, times the number of cores, and the sizes those of
the full form of `make bench`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.rows import Row

BYTES, PRODUCTS = "memory in order, GB/s", "matrix product, GFlop/s"  # names of rates
N_EDGES = 2 * 5_811_402  # of the pairs, in both directions
COUPLING_GB = N_EDGES * 12 / 1e9  # of a bit: couplings in double precision, places in four bytes
BITS = 48
QUAD_PRODUCTS = 70  # of the couplings with a vector, for a bit of quad: about so many


class Floor(NamedTuple):
    """The least that the part measured in a row needs."""

    row: str  # as its name begins
    why: str
    rate: str
    amount: float  # of what the rate is of: GB or GFlop


FLOORS = (
    Floor("cut, from free codes", "couplings and places read once", BYTES, BITS * COUPLING_GB),
    Floor("cut, from random codes", "couplings and places read once", BYTES, BITS * COUPLING_GB),
    Floor(
        "a sweep of quad at mu = 0",
        f"couplings and places read {QUAD_PRODUCTS} times",
        BYTES,
        QUAD_PRODUCTS * BITS * COUPLING_GB,
    ),
    Floor("KSH from 5,811,402 pairs, their", "places, of two bytes", BYTES, N_EDGES * 2 / 1e9),
    Floor("10 nearest of 1,000,000 codes, one query", "codes of eight bytes", BYTES, 0.008),
    # In single precision, of which a core makes twice as many operations as the rate says.
    Floor("encoding 100,000 points", "the product", PRODUCTS, 1e-9 * 100_000 * 320 * 64),
)


def table(about: dict[str, Any], rows: Sequence[Row]) -> str:
    """Each part with its floor, what was measured, and how many times the floor that is."""
    cores, rates = about["machine"]["cores"], about["rates"]
    lines = ["| part | floor | measured | times the floor |", "|---|---|---|---|"]
    for floor in FLOORS:
        row = next(row for row in rows if row.what.startswith(floor.row))
        seconds = floor.amount / (cores * rates[floor.rate])
        # As a row, whose peer is the floor.
        beside = Row(row.what, row.ours, theirs=(seconds,) * len(row.ours))
        measured, least = beside.amount(beside.ours), beside.amount(beside.theirs)
        times = Row("", beside.theirs, theirs=beside.ours).spread
        lines.append(f"| {row.what} | {floor.why}: {least} | {measured} | {times} |")
    return "\n".join(lines) + "\n"
