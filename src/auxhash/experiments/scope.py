"""The cells that a claim looks at: those without which its verdict would have other numbers.

Found on made records, as a claim is a function of records, and nothing else tells. A cell is the
runs of a method with a hash function and a number of bits in a group; a case is its group, hash
function and number of bits, for all methods.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from auxhash.experiments.claims import Claim, judge
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import Scale
from auxhash.mac.loop import Returned

MethodCell = tuple[str, str, str, int]  # group, method, hash function, bits
CellCase = tuple[str, str, int]  # group, hash function, bits
RANKS = (10, 20)
FACTOR = 100.0  # that makes any number smaller, or larger, than all others


@dataclass(frozen=True)
class Coverage:
    """The number of cases that were run with all methods that a claim looks at, and of all."""

    cases: int
    planned: int

    def __str__(self) -> str:
        return f"{self.cases} of {self.planned} cases"


def run(cells: Collection[MethodCell], records: Sequence[Record]) -> Coverage:
    """Count the cases of these cells, and those of which all cells have a record."""
    known = {record.key[:-1] for record in records}
    cases: dict[CellCase, bool] = {}
    for cell in cells:
        group, _, kind, bits = cell
        case = group, kind, bits
        cases[case] = cases.get(case, True) and cell in known
    return Coverage(sum(cases.values()), len(cases))


@lru_cache
def of_figure(name: str, scale: Scale, methods: frozenset[str]) -> Mapping[str, set[MethodCell]]:
    """`looked_at`, for the claims of the figure of that name."""
    figure = FIGURES[name]
    assert isinstance(figure, GroupFigure)
    return looked_at(figure.claims, figure.groups(scale), methods)


def looked_at(
    claims: Sequence[Claim], groups: Sequence[Group], methods: Collection[str]
) -> dict[str, set[MethodCell]]:
    """The cells of these methods that each claim looks at, by its words.

    Those are the cells of a method, of a hash function and of a number of bits that it looks at.
    All numbers of these methods are smaller than those of the others, so that it shows in a claim
    about the best of some when those of one of them become the largest.
    """
    one_seed = [replace(group, seeds=1, seeds_quad=1) for group in groups]
    made = made_records(one_seed, np.random.default_rng(0))
    records = [_times(r, 1 / FACTOR) if r.method in methods else r for r in made]
    before = judge(claims, records)

    def looking_at(part: Callable[[Record], bool]) -> set[str]:
        """The words of the claims that look at this part of the records."""
        without = [record for record in records if not part(record)]
        raised = [_times(r, FACTOR**2) if r.method in methods and part(r) else r for r in records]
        others = judge(claims, without), judge(claims, raised)
        return {
            old.words
            for after in others
            for old, new in zip(before, after, strict=True)
            if (old.holds, old.numbers) != (new.holds, new.numbers)
        }

    wanted = [record.key[:-1] for record in records if record.method in methods]
    fields = 1, 2, 3  # of a cell: method, hash function, bits
    parts = {(cell[0], at, cell[at]) for cell in wanted for at in fields}
    by_part = {
        (group, at, value): looking_at(partial(_in_part, group=group, at=at, value=value))
        for group, at, value in parts
    }
    return {
        claim.words: {
            cell
            for cell in wanted
            if all(claim.words in by_part[cell[0], at, cell[at]] for at in fields)
        }
        for claim in claims
    }


def _in_part(record: Record, group: str, at: int, value: object) -> bool:
    return record.group == group and record.key[at] == value


def _times(record: Record, factor: float) -> Record:
    """The record with its measurements, but for MAC's steps, multiplied by a factor."""
    return replace(
        record,
        loss=factor * record.loss,
        precision={k: factor * value for k, value in record.precision.items()},
        radius=[(recall, factor * precision) for recall, precision in record.radius],
        average_precision=factor * record.average_precision,
        effective={part: factor * bits for part, bits in record.effective.items()},
        seconds=factor * record.seconds,
    )


def made_records(
    groups: Sequence[Group], rng: np.random.Generator, iterate: Returned = "last"
) -> Iterator[Record]:
    """Yield a record with any numbers for each method, hash function, number of bits and seed."""
    spread = rng.choice([0.01, 8.0])  # of the losses: all nearly the same, or not at all
    for group in groups:
        for method, planned in group.members():
            n, second = int(rng.integers(3, 30)), 10 ** rng.uniform(-2, 2)
            steps = [
                {
                    "iteration": at,
                    "loss": 1 + spread * rng.uniform(),
                    "free_loss": rng.uniform(1, 9),
                }
                | {
                    "violations": int(rng.integers(0, 3)),
                    "accepted": bool(rng.integers(2) or not at),
                }
                | {"score": rng.uniform(), "skipped": int(rng.integers(0, 9))}
                | {name: second * rng.uniform() for name in ("z_seconds", "h_seconds")}
                | {"seconds": second * 10 ** rng.uniform(1, 6)}
                for at in range(n)
            ]
            yield Record(
                group.name,
                method,
                planned.hash_function,
                planned.n_bits,
                planned.seed,
                1 + spread * rng.uniform(),
                {k: rng.uniform() for k in RANKS},
                list(zip([0.1, 0.2, 0.8, 0.9], rng.uniform(size=4).tolist(), strict=True)),
                rng.uniform(),
                {part: rng.uniform(1, 6) for part in ("base", "query")},
                steps,
                rng.uniform(1, 50),
                60,
                iterate=iterate,
            )
