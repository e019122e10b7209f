"""Tables of what holds, what fails and why, over all figures: python docs/verdicts.py.

Writes docs/summary/*.md out of the verdicts of docs/verdicts.py on the paper's claims, in every
order of the blocks and both forms of MAC's h step: claims that held wherever they were judged,
those that held nowhere, and the others; how many of each; and what MAC gains.
"""

import json
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.experiments import claims, iterates
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import TWO_STEP_OF, Record

DOCS = Path(__file__).parent
FOLDER = DOCS / "summary"
VERDICTS = runpy.run_path(str(DOCS / "verdicts.py"))
FIGURES: dict[str, Any] = VERDICTS["FIGURES"]
Kind = tuple[str, str]  # order of the blocks, form of the h step
COLUMNS: dict[Kind, str] = {
    kind: words.removeprefix("blocks in ").removesuffix(" h step")
    for kind, words in VERDICTS["COLUMNS"].items()
}
HOLDS, FAILS, SO_FAR = "held", "not held", "so far "
# Headings of the section "Why claims fail" of docs/verdicts.md, and the claims that each explains.
# A claim that goes on from one of these ("...") has the same reason, if no other names it; "DATA: "
# before a claim is for that data set alone.
REASONS: dict[str, list[str]] = json.loads((FOLDER / "reasons.json").read_text("utf-8"))
SURE = re.compile("It can hardly fail|It can fail by|It cannot fail")
NOTHING = "\N{EN DASH}"  # where there is no run
NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?%?(?: of \d+)?"


@dataclass(frozen=True)
class Judged:
    """A claim about a figure, with verdict and numbers by order and h step, where it was judged."""

    figure: str
    data: str  # of panels that have files of their own
    claim: str  # that it goes on from, or itself
    words: str
    ours: bool
    by_kind: Mapping[Kind, tuple[str, str]]

    @property
    def sentence(self) -> str:
        """The claim as a sentence of its own."""
        words = self.words if self.claim == self.words else f"{self.claim} {self.words}"
        return f"{words}{' †' if self.ours else ''}"

    @property
    def figure_link(self) -> str:
        """The figure's number as a link, with the data of its panels."""
        return f"{link(self.figure)}, {self.data}" if self.data else link(self.figure)

    def settings_with(self, word: str) -> list[Kind]:
        """Settings with this verdict, preliminary ones among them."""
        return [kind for kind, own in self.by_kind.items() if own[0].removeprefix(SO_FAR) == word]

    @property
    def verdict(self) -> str:
        """Held or not held in all settings in which it was judged; otherwise empty."""
        words = {verdict.removeprefix(SO_FAR) for verdict, _ in self.by_kind.values()}
        return words.pop() if len(words) == 1 else ""


def judged() -> Iterator[Judged]:
    """Every claim of a figure that was judged in some setting."""
    for name, figure in FIGURES.items():
        for data in ("", *VERDICTS["APART"]):
            results = VERDICTS["results_of"](figure, f"{name}-{data}" if data else name)
            first = ""
            for claim in figure.claimed:
                first = first if claim.words.startswith("...") else claim.words
                by_kind = {
                    kind: (verdict["verdict"], verdict["numbers"])
                    for kind, own in results.items()
                    for verdict in own["verdicts"]
                    if verdict["claim"] == claim.words
                    and verdict["verdict"].removeprefix(SO_FAR) in (HOLDS, FAILS)
                }
                if by_kind:
                    yield Judged(name, data, first, claim.words, claim.ours, by_kind)


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    every = [each for each in judged() if not each.ours]
    made = {
        "count": count(every),
        "held": listed([each for each in every if each.verdict == HOLDS]),
        "failed": listed([each for each in every if each.verdict == FAILS], True),
        "mixed": mixed([each for each in every if not each.verdict]),
        "gains": gains(),
        "progress": progress(),
        "h-steps": h_steps(VERDICTS["_lines"](VERDICTS["DIFFERS"])),
    }
    return {FOLDER / f"{name}.md": table for name, table in made.items()}


def count(every: Sequence[Judged]) -> str:
    """Count the claims that were judged and held, by setting; preliminary verdicts count apart."""
    rows = []
    for kind, name in COLUMNS.items():
        own = [each.by_kind[kind] for each in every if kind in each.by_kind]
        final = [verdict for verdict, _ in own if not verdict.startswith(SO_FAR)]
        sure = sum(verdict == HOLDS and bool(SURE.search(words)) for verdict, words in own)
        early = [verdict for verdict, _ in own if verdict.startswith(SO_FAR)]
        early_holds = early.count(SO_FAR + HOLDS)
        cells = [
            final.count(HOLDS),
            sure,
            final.count(FAILS),
            early_holds,
            len(early) - early_holds,
        ]
        rows.append([name, *map(str, cells)])
    head = ["order, h step", "held", "of these, can hardly fail", "not held"]
    return table([*head, "so far held", "so far not held"], rows)


def listed(every: Sequence[Judged], with_reasons: bool = False) -> str:
    """Claims with the same verdict in all settings, the numbers of these, and why."""
    rows = [[each.figure_link, each.sentence, joined_numbers(each.by_kind)] for each in every]
    if not with_reasons:
        return table(["figure", "claim", "numbers"], rows)
    rows = [[*row, why(each)] for row, each in zip(rows, every, strict=True)]
    return table(["figure", "claim", "numbers", "why"], rows)


def mixed(every: Sequence[Judged]) -> str:
    """Claims that hold in some settings alone."""
    rows = [
        [
            each.figure_link,
            each.sentence,
            *("; ".join(_named(each, kind) for kind in each.settings_with(word)) for word in WORDS),
            joined_numbers(each.by_kind),
            why(each),
        ]
        for each in every
    ]
    return table(["figure", "claim", *WORDS, "numbers", "why"], rows)


WORDS = (HOLDS, FAILS)


def _named(each: Judged, kind: Kind) -> str:
    early = each.by_kind[kind][0].startswith(SO_FAR)
    return f"{COLUMNS[kind]}{' (so far)' if early else ''}"


def why(each: Judged) -> str:
    """A link to the reason why the claim fails where it does."""
    heading = reason(each)
    return f"[{heading}](#{anchor(heading)})" if heading else ""


def reason(each: Judged) -> str:
    """The heading that stands below the claim, or below the one that it goes on from."""
    by_words = {words: heading for heading, own in REASONS.items() for words in own}
    return next((by_words[name] for name in names(each) if name in by_words), "")


def names(each: Judged) -> list[str]:
    """The names that REASONS can have for the claim, the closest first."""
    words = each.words, each.claim
    return [*(f"{each.data}: {name}" for name in words), *words]


def link(figure: str) -> str:
    """The figure's number, with a link to its section."""
    return f"[{FIGURES[figure].number}](#{anchor(heading_of(figure))})"


def heading_of(figure: str) -> str:
    """The heading of a figure's section in docs/verdicts.md."""
    headings = re.findall(r"^## (.+)$", (DOCS / "verdicts.md").read_text("utf-8"), re.MULTILINE)
    return next(h for h in headings if h == OTHER_HEADINGS.get(figure) or h.endswith(f": {figure}"))


OTHER_HEADINGS = {"run-time": "Run time"}  # the others end with the name of the figure


def anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def key_clauses(numbers: str) -> str:
    """Return the clauses of a verdict that say what was needed, and the averages that follow them.

    A clause that goes on from the one before brings it along; one without a number, the next.
    """
    clauses = re.split(r"; |\. (?=[A-Z0-9])", numbers.rstrip("."))
    kept = list[str]()
    for before, clause in pairwise(["", *clauses]):
        if "(needed" in clause:
            goes_on = before and before not in kept and not clause[0].isupper()
            kept += [before, clause] if goes_on else [clause]
        elif "(needed" in before and "on average" in clause:
            kept.append(clause.split("on average")[0] + "on average")
    at = next(at for at, clause in enumerate(clauses) if re.search(NUMBER, clause))
    first = clauses[: at + 1]
    return "; ".join(kept or first)


def joined_numbers(by_kind: Mapping[Kind, tuple[str, str]]) -> str:
    """Return the key clauses of all settings as one sentence: a number as often as it differs.

    Its values are in the order of the settings, an asterisk for a preliminary verdict, a dash where
    there is none; those of the plain h step are left out if there is neither.
    """
    forms: dict[str, dict[Kind, list[str]]] = {}
    for kind, (_, numbers) in by_kind.items():
        words = key_clauses(numbers)
        forms.setdefault(re.sub(NUMBER, "#", words), {})[kind] = re.findall(NUMBER, words)
    if len(forms) > 1:
        return "; ".join(
            f"**{COLUMNS[kind]}**: {key_clauses(by_kind[kind][1])}" for kind in by_kind
        )
    [(form, values)] = forms.items()
    early = {kind for kind, (verdict, _) in by_kind.items() if verdict.startswith(SO_FAR)}
    pieces = form.split("#")
    for at in range(len(pieces) - 1):
        own = {kind: each[at] for kind, each in values.items()}
        marked = [own[k] + "\\*" * (k in early) if k in own else NOTHING for k in COLUMNS]
        every = " / ".join(marked).removesuffix(f" / {NOTHING}" * 2)
        pieces[at] += next(iter(own.values())) if len({*own.values()}) == 1 else every
    return "".join(pieces)


GAINED = 100  # rank of the precision that is shown


def gains() -> str:
    """Tabulate MAC's gain over its two-step start in loss and precision, by figure and method."""
    rows = []
    for name, figure in FIGURES.items():
        if not isinstance(figure, GroupFigure) or name in REPEATING:
            continue
        for group in figure.groups(VERDICTS["SCALE"]):
            data = next((d for d in VERDICTS["APART"] if group.data.name == d), "")
            results = VERDICTS["results_of"](figure, f"{name}-{data}" if data else name)
            of = {kind: _of(own["records"], group.name) for kind, own in results.items()}
            for two_step, mac in TWO_STEP_OF.items():
                cells = [_gain(of.get(kind, []), mac, two_step) for kind in COLUMNS]
                if set(cells) != {NOTHING}:
                    rows.append([link(name), _data(group), mac, *cells])
    return table(["figure", "data", "method", *COLUMNS.values()], rows)


def progress() -> str:
    """Return how far down L(h) is after a half and two thirds of the iterations, run by run."""
    by_run: dict[tuple[str, ...], dict[Kind, str]] = {}
    for kind, run, halves in shares_of_progress():
        shown = ", ".join(f"{share:.0%}" for share in halves) if halves else "does not fall"
        by_run.setdefault(run, {})[kind] = shown
    rows = [[*run, *(own.get(kind, NOTHING) for kind in COLUMNS)] for run, own in by_run.items()]
    return table(["loss", "method", "function", "bits", *COLUMNS.values()], rows)


def shares_of_progress() -> Iterator[tuple[Kind, tuple[str, ...], tuple[float, ...]]]:
    """Each run of MAC in fig. 2: its setting, what it is, and the shares; none if L never fell."""
    name = "sup-nestederr"
    for kind, results in VERDICTS["results_of"](FIGURES[name], name).items():
        for record in claims.mac_runs(results["records"]):
            if record.seed == 0:
                path = iterates.losses(record)
                parts = ((1, 2), (2, 3)) if min(path) < path[0] else ()
                shares = tuple(iterates.progress(path, *part) for part in parts)
                run = record.group, record.method, record.hash_function, str(record.bits)
                yield kind, run, shares


REPEATING = ("sup-nestederr-freecodes", "run-time", "unsup-free", "unsup-entropy")  # same runs


def _data(group: Any) -> str:
    kinds = "linear" if group.hash_functions == ("linear",) else "linear and kernel"
    cosine = ", cosine" if group.data.cosine else ""
    pairs = "" if group.pairs == VERDICTS["SCALE"].pairs else ", κ {} / {:,}".format(*group.pairs)
    return f"{group.data.name}{cosine}, {loss_name(group.loss)}, {kinds}{pairs}"


def loss_name(loss: str) -> str:
    return {"ksh": "KSH", "esplh": "eSPLH"}[loss]


def _of(records: Sequence[Record], group: str) -> list[Record]:
    return [record for record in records if record.group == group]


def _gain(records: Sequence[Record], mac: str, two_step: str) -> str:
    losses = claims.paired(records, mac, two_step, lambda r: r.loss)
    having = [record for record in records if GAINED in record.precision]
    shares = claims.paired(having, mac, two_step, lambda r: r.precision[GAINED])
    if not losses or not shares:
        return NOTHING
    fall = np.mean([1 - pair.a / pair.b for pair in losses])
    gain = np.mean([pair.a - pair.b for pair in shares])
    return f"{fall:.2%}, {gain:+.3f} ({len(losses)})"


def h_steps(differs: Sequence[Mapping[str, Any]]) -> str:
    """Compare runs by their form of the h step, seed by seed: 16 bits, linear, with validation.

    The two-step solution, where both start, is the same.
    """
    runs = {(row["change"], row["seed"]): row for row in differs}
    rows = []
    for ours, papers in VERDICTS["CHANGED_H_STEPS"]:
        for (change, seed), run in runs.items():
            if change == ours and (papers, seed) in runs:
                both = [run["mac"], runs[papers, seed]["mac"]]
                start = run["two_step"]
                falls = [f"{1 - each['loss'] / start['loss']:.2%}" for each in both]
                shares = [f"{each['precision'][0]:.3f}"[1:] for each in (start, *both)]
                order = "random" if "random" in change else "one"
                rows.append([order, str(seed), *falls, *shares])
    head = ["order", "seed", "L(h) falls by, monotone", "plain", "precision at 100, two-step"]
    return table([*head, "monotone", "plain"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, made in tables().items():
        path.write_text(made, "utf-8")
