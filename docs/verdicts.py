"""Verdicts on the paper's claims: python docs/verdicts.py.

Writes docs/results/FIGURE.md, a table for readers, for every figure: from docs/results/FIGURE.json,
of runs with the blocks of cut in random order, and FIGURE-fixed.json, with the blocks in one order.
FIGURE-later.json and FIGURE-later-fixed.json hold runs that were made after
the others, such as those of quad: a claim that these say something about is judged by all of them,
and by the same runs in the files of other figures. These runs had MAC's h step "monotone" and
returned the iterate of lowest L(h). figures.jsonl, of `python -m benchmarks figures`, has runs that
they lack, and those of the paper's h step, "plain", which return the last iterate and have columns
of their own; those of the sketch are in FIGURE-plain.json and FIGURE-plain-fixed.json.
A verdict is preliminary, "so far", where planned runs of methods that its claim looks at are
missing, and says how many of its cases were run with all of them.
docs/summary.py makes the tables over all figures.
A figure with panels on a second data set may have them in files of their own, FIGURE-DATA.json and
FIGURE-DATA-fixed.json, and then in a second table.
"""

import json
import re
import runpy
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.experiments import claims, numbers, scope
from auxhash.experiments.figures import FIGURES, maps, sketch
from auxhash.experiments.figures.figure import Figure, GroupFigure, fewer_seeds, missing
from auxhash.experiments.groups import PAPERS, TWO_STEP_OF, Group, PlannedRun, Record
from auxhash.experiments.scales import ORDERS, PAPER, STAND_IN, Scale
from auxhash.mac.loop import HStep
from auxhash.mac.presets import Order

RESULTS = Path(__file__).parent / "results"
FIGURES_FILE, DIFFERS, SETTING, H_STEPS, AUTOENCODER = (
    RESULTS / f"{name}.jsonl" for name in ("figures", "differs", "setting", "hstep", "autoencoder")
)
Kind = tuple[Order, HStep]
ENDINGS: dict[Kind, str] = {
    ("fixed", "monotone"): "-fixed",
    ("random", "monotone"): "",
    ("fixed", "plain"): "-plain-fixed",
    ("random", "plain"): "-plain",
}
COLUMNS = {kind: f"{ORDERS[kind[0]]}, {kind[1]} h step" for kind in ENDINGS}
QUEUE = "python -m benchmarks figures"
APART = ("infinite-mnist",)  # data sets whose panels have files of their own
# No run had SIFT1M. A second seed of quad counts where there is one.
STAND_IN_DATA = replace(PAPER.descriptors, name=STAND_IN)
SCALE = replace(PAPER, descriptors=STAND_IN_DATA, seeds_quad=PAPER.seeds)
EMPTY: dict[str, Any] = {"results": []}
# What notes say that does not hold with later runs.
OUTDATED = ("runs are missing", f"in place of {PAPER.seeds}.")
BEFORE = " --h-step monotone --iterate lowest"  # what the runs of files that do not say it had
NOT_RUN = "**not run**"
JUDGED = ("held", "not held")
METHODS = frozenset((*PAPERS, *TWO_STEP_OF))  # whose runs can be missing

Results = dict[Kind, dict[str, Any]]
Rows = Sequence[dict[str, Any]]
Pairs = Sequence[tuple[dict[str, Any], dict[str, Any]]]


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    figures = {RESULTS / f"{name}.md": text(figure) for name, figure in FIGURES.items()}
    sources = (_lines(path) for path in (DIFFERS, SETTING, H_STEPS, AUTOENCODER))
    both = figure_pairs()
    of_maps = {(one["loss"], one["mapping"]): one for one in _read("maps.json")["results"]}
    others = {"outside.md": outside(*sources, both, of_maps), "h-steps.md": h_step_table(both)}
    return figures | {RESULTS / name: table for name, table in others.items()}


def _lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def outside(
    differs: Rows, setting: Rows, h_steps: Rows, autoencoder: Rows, both: Pairs, of_maps: maps.Cases
) -> str:
    """The table of claims outside of the figures that other results say something about."""
    judged = [
        *validation_claims(differs),
        more_points(setting),
        scales_linearly(autoencoder),
        *h_step_claims(h_steps, differs, both),
        *maps.verdicts(of_maps),
    ]
    rows = [
        [f"{claim.words}{' †' * claim.ours}", f"**{v['verdict']}**. {v['numbers']}"]
        for claim, v in zip(judged, _written(judged), strict=True)
    ]
    return "\n".join([_line(["claim", "verdict"]), "|---|---|", *map(_line, rows)]) + "\n"


# Of `python -m benchmarks differs`: runs with validation and without it, by h step.
VALIDATED: dict[HStep, tuple[str, str]] = {
    "monotone": ("as set", "no validation"),
    "plain": ("plain h step", "plain h step, no validation"),
}


def validation_claims(rows: Rows) -> list[claims.Verdict]:
    """Judge sec. 3.1 by runs with and without validation, by both h steps, seed by seed."""
    runs = {(row["change"], row["seed"]): row for row in rows}
    gains, fewer = list[float](), list[bool]()
    more, saved = list[str](), list[str]()
    for h_step, (validated, alone) in VALIDATED.items():
        both = [
            (run, runs[alone, seed])
            for (change, seed), run in runs.items()
            if change == validated and (alone, seed) in runs
        ]
        own = [a["mac"]["precision"][0] - b["mac"]["precision"][0] for a, b in both]
        shorter = [a["iterations"] < b["iterations"] for a, b in both]
        more.append(f"{', '.join(f'{gain:+.3f}' for gain in own)} ({h_step} h step)")
        saved.append(f"{sum(shorter)} of {len(shorter)} runs ({h_step} h step)")
        gains += own
        fewer += shorter
    return [
        claims.Verdict(
            "Validation improves generalisation",
            False,
            all(gain > 0 for gain in gains),
            "Precision at 100 of MACcut with validation, less that without, seed by seed: "
            f"{' and '.join(more)} (needed: all above 0). Without it, MAC learns from the points "
            "held out, too: a tenth of all.",
        ),
        claims.Verdict(
            "Validation saves computation",
            False,
            all(fewer),
            f"Fewer iterations in {' and '.join(saved)} (needed: all): a step is computed before "
            "it is judged. Iterations say little of it, as mu alone nearly fixes how many there "
            "are: it grows until Z = h(X), whether steps are ignored or not.",
        ),
    ]


def more_points(rows: Rows) -> claims.Verdict:
    """Judge sec. 5: hash functions learnt from more points are better ones, all else the same."""
    runs: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows:
        case = row["function"], row["bits"], row["seed"], row["way"]
        runs.setdefault(case, {})[row["train"]] = row["mac"]["precision"]["100"]
    gains = [own[10_000] - own[2_000] for own in runs.values() if {2_000, 10_000} <= set(own)]
    won = sum(gain > 0 for gain in gains)
    return claims.Verdict(
        "Larger numbers of training points would improve the quality of the loss function",
        False,
        won == len(gains),
        f"Precision at 100 of MAC higher with 10,000 points than with 2,000 in {won} of "
        f"{len(gains)} runs (needed: all); by {sum(gains) / len(gains):+.3f} on average, "
        f"{min(gains):+.3f} at worst.",
    )


LINEAR = 1.1  # the largest power of the number of points that counts as linear


def scales_linearly(rows: Rows) -> claims.Verdict:
    """Judge sec. 5: seconds per iteration of the autoencoder, over the number of points."""
    rows = sorted(rows, key=lambda row: row["points"])
    points = [row["points"] for row in rows]
    each = [row["seconds"] / row["iterations"] for row in rows]
    power = float(np.polyfit(np.log(points), np.log(each), 1)[0])
    listed = ", ".join(f"{s:.2f} s at {n:,}" for n, s in zip(points, each, strict=True))
    return claims.Verdict(
        "The binary autoencoder scales linearly with the dataset",
        False,
        power <= LINEAR,
        f"An iteration takes time in proportion to the number of points to the power of "
        f"{power:.2f} (needed: {LINEAR} at most): {listed}.",
    )


# Of `python -m benchmarks differs`, at the paper's size: what differs in the h step or mu alone.
CHANGED_H_STEPS = (
    ("as set", "plain h step"),
    ("blocks in random order", "plain h step, blocks in random order"),
)
CHANGED_ALONE = (("no validation", "plain h step, no validation"),)
CHANGED_MU: dict[HStep, tuple[str, str]] = {
    "monotone": ("as set", "mu over b², as for eq. (3) unscaled"),
    "plain": ("plain h step", "plain h step, mu over b²"),
}


def h_step_claims(rows: Rows, differs: Rows, both: Pairs) -> list[claims.Verdict]:
    """Judge the paper's h step, iterate and mu by runs that differ in nothing else."""
    names = "way", "function", "bits", "points", "seed", "h_step"
    runs = {tuple(row[name] for name in names): row for row in rows}
    plain = [(runs.get((*key[:-1], "monotone")), run) for key, run in runs.items()]
    plain = [(a, b) for a, b in plain if a and b["h_step"] == "plain"]
    alone = ("no validation", "no refinement")
    free = [pair for pair in plain if pair[1]["way"].endswith(alone)]
    validated = [p for p in plain if p[1]["way"].endswith(("order", "to the letter"))]
    letter = [(runs.get((key[0] + ", to the letter", *key[1:])), run) for key, run in runs.items()]
    differing = [run for run in rows if run["last"]["loss"] != run["lowest"]["loss"]]
    ahead = sum(run["last"]["precision"] > run["lowest"]["precision"] for run in differing)
    plainly = "The paper's h step lowers the loss more than ours"
    literally = "The paper's mu lowers the loss more if it belongs to eq. (3) as it stands"
    few, many = "with 2,000 points", "with 10,000 points"
    free += _changed(differs, CHANGED_ALONE)
    literal = [(run, other) for other, run in letter if other]
    readings = [
        *((few, form, [p for p in literal if p[0]["h_step"] == form]) for form in CHANGED_MU),
        *((many, form, _changed(differs, [change])) for form, change in CHANGED_MU.items()),
    ]
    return [
        _further(f"{plainly}, without validation", free, claims.ALWAYS),
        _further(f"... with validation, {many}", _changed(differs, CHANGED_H_STEPS), claims.ALWAYS),
        _further("... with validation, in the figures", both, claims.ALWAYS),
        _further(f"... with validation, {few}", validated, claims.ALWAYS),
        *(
            _further(
                f"{'...' if at else f'{literally},'} {points}, {form} h step", pairs, claims.USUALLY
            )
            for at, (points, form, pairs) in enumerate(readings)
        ),
        claims.Verdict(
            "The last iterate is the one of lowest L(h)",
            True,
            not differing,
            f"In {len(rows) - len(differing)} of {len(rows)} runs (needed: all); the last is ahead "
            f"in precision at 100 in {ahead} of the others.",
        ),
    ]


def figure_pairs() -> Pairs:
    """Runs of MAC that the figures have with both h steps: with ours, and with the paper's."""
    pairs = []
    for order in ORDERS:
        ours, papers = stored(order, "monotone"), stored(order, "plain")
        for (method, run), start in papers.items():
            key = TWO_STEP_OF.get(method, ""), run
            if key in ours and key in papers:
                data = f"{run.data.name}{', cosine' * run.data.cosine}"
                case = data, run.loss, run.hash_function, ORDERS[order]
                two_step = {"loss": start.loss, "precision": start.precision[100]}
                a, b = (
                    {"loss": record.loss, "two_step": two_step, "case": case}
                    | {"lowest": {"precision": record.precision[100]}}
                    for record in (ours[key], papers[key])
                )
                pairs.append((a, b))
    return pairs


def h_step_table(both: Pairs) -> str:
    """Means over the runs of the figures that both h steps have, bits and seeds together."""
    cases: dict[tuple[str, ...], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for pair in both:
        cases.setdefault(pair[0]["case"], []).append(pair)
    head = ["data", "loss", "function", "blocks", "runs", "L(h) falls by, monotone", "plain"]
    head += ["precision at 100, two-step", "monotone", "plain"]
    lines = [_line(head), "|---" * len(head) + "|"]
    for case, pairs in sorted(cases.items()):
        a, b = zip(*pairs, strict=True)
        falls = [
            np.mean([1 - run["loss"] / run["two_step"]["loss"] for run in own]) for own in (a, b)
        ]
        start = np.mean([run["two_step"]["precision"] for run in a])
        shares = [start, *(np.mean([run["lowest"]["precision"] for run in own]) for own in (a, b))]
        numbers = [*(f"{fall:.2%}" for fall in falls), *(f"{s:.3f}"[1:] for s in shares)]
        lines.append(_line([*case, str(len(pairs)), *numbers]))
    return "\n".join(lines) + "\n"


def _changed(rows: Rows, changes: Sequence[tuple[str, str]]) -> Pairs:
    """Pairs of runs of one seed, before a change and after it."""
    runs = {
        (row["change"], row["seed"]): row["mac"]
        | {"two_step": row["two_step"], "lowest": {"precision": row["mac"]["precision"][0]}}
        for row in rows
        if "mac" in row
    }
    return [
        (runs[before, seed], run)
        for before, after in changes
        for (change, seed), run in runs.items()
        if change == after and (before, seed) in runs
    ]


def _further(words: str, pairs: Pairs, share: float) -> claims.Verdict:
    """Judge whether L(h) falls further in the second run of a pair, in this share of the pairs."""
    gains = [[1 - run["loss"] / run["two_step"]["loss"] for run in pair] for pair in pairs]
    holds, won = claims.counted([b > a for a, b in gains], share, "runs")
    higher = sum(b["lowest"]["precision"] > a["lowest"]["precision"] for a, b in pairs)
    a, b = (sum(each) / len(each) for each in zip(*gains, strict=True))
    return claims.Verdict(
        words,
        True,
        holds,
        f"L(h) falls further in {won}: by {b:.2%} on average, and by {a:.2%} without it; precision "
        f"at 100 is higher in {higher}.",
    )


def text(figure: Figure) -> str:
    """The table of a figure, and those of data sets that have files of their own."""
    parts = [table(figure, results_of(figure, figure.name))]
    for data in APART:
        if results := results_of(figure, f"{figure.name}-{data}"):
            parts.append(f"On {data}:\n\n{table(figure, results)}")
    return "\n".join(parts)


def results_of(figure: Figure, name: str) -> Results:
    """The results of a figure that there are, by order and h step."""
    results: Results = {}
    for kind, ending in ENDINGS.items():
        first, later = (_read(f"{name}{part}{ending}.json") for part in ("", "-later"))
        if later and not (first and isinstance(figure, GroupFigure)):
            raise ValueError(f"{name}-later{ending}.json has nothing to be joined with")
        if first:
            results[kind] = (
                together(figure, first, later, kind)
                if isinstance(figure, GroupFigure)
                else first | {"verdicts": _written(sketch.verdicts(first["results"]))}
            )
        elif isinstance(figure, GroupFigure) and (queued := of_queue(figure, name, kind)):
            results[kind] = queued
        if kind in results and isinstance(figure, GroupFigure):
            results[kind] = preliminary(figure, name, results[kind])
    return results


def preliminary(figure: GroupFigure, name: str, result: dict[str, Any]) -> dict[str, Any]:
    """The result, with "so far" before its verdicts on claims of which planned runs are missing.

    Planned are those of seed 0. A claim of which no case was run stays "not tested".
    """
    planned = {group.name for group in _panels(figure, name)}
    looked_at = scope.of_figure(figure.name, SCALE, METHODS)
    verdicts = []
    for verdict in result["verdicts"]:
        cells = {cell for cell in looked_at[verdict["claim"]] if cell[0] in planned}
        run = scope.run(cells, result["records"])
        early = run.cases < run.planned and verdict["verdict"] in JUDGED
        so_far = {"verdict": f"so far {verdict['verdict']}", "cases": str(run)}
        verdicts.append(verdict | so_far if early else verdict)
    return result | {"verdicts": verdicts}


def _panels(figure: GroupFigure, name: str) -> list[Group]:
    """The groups of a figure, or those on the data set that the name ends with."""
    panels = [data for data in APART if name.endswith(data)]
    return [
        group
        for group in figure.groups(SCALE)
        if (group.data.name in panels if panels else group.data.name not in APART)
    ]


def of_queue(figure: GroupFigure, name: str, kind: Kind) -> dict[str, Any]:
    """Results out of figures.jsonl alone; none without a run of MAC."""
    groups = _panels(figure, name)
    records = _of_other_figures(groups, kind)
    macs = [record for record in records if record.method in PAPERS]
    if not macs:
        return {}
    seeds = f"{len({record.seed for record in macs})} of {SCALE.seeds} seeds of MAC were run."
    return {
        "command": QUEUE,
        "notes": list(filter(None, [seeds, _missing(_with_methods(groups, PAPERS), macs)])),
        "verdicts": _written(claims.judge(figure.claims, _alike(records))),
        "records": records,
    }


def _written(verdicts: Sequence[claims.Verdict]) -> list[dict[str, str]]:
    return [{"claim": v.words, "verdict": v.word, "numbers": v.numbers} for v in verdicts]


def _read(name: str) -> dict[str, Any]:
    path = RESULTS / name
    read: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if "command" in read and "h_step" not in read:  # made before there was a choice
        read["command"] += BEFORE
    return read


def together(
    figure: GroupFigure,
    first: dict[str, Any],
    later: dict[str, Any] | None = None,
    kind: Kind | None = None,
) -> dict[str, Any]:
    """The first results, with the verdicts that the later ones change, and on newer claims.

    What they leave as it was keeps its words: it was judged before its numbers were rounded. With
    the kind of their runs, the same runs of other figures and of the queue are judged, too.
    """
    groups = figure.groups(SCALE)
    alone = _records(groups, first)
    every = {record.key: record for record in [*alone, *_records(groups, later or EMPTY)]}
    known = set(every)
    if kind is not None:
        others = _of_other_figures(_run(groups, alone), kind)
        every |= {record.key: record for record in others if record.key not in every}
    earlier = {verdict["claim"]: verdict for verdict in first["verdicts"]}
    verdicts = [
        earlier[after.words]
        if _stands(earlier.get(after.words), before, after)
        else _written([after])[0]
        for before, after in zip(
            claims.judge(figure.claims, alone),
            claims.judge(figure.claims, _alike(list(every.values()))),
            strict=True,
        )
    ]
    borrowed = len(every) - len(known)
    first = first | {"verdicts": verdicts, "records": list(every.values())}
    if not (later or borrowed):
        return first
    later = later or {"notes": [], "command": ""}
    all_notes = dict.fromkeys([*first["notes"], *later["notes"]])
    seeds = fewer_seeds(1 + max(record.seed for record in every.values()), SCALE)
    notes = [*filter(None, [seeds]), *(note for note in all_notes if not _outdated(note))]
    if borrowed:
        notes.append(f"{borrowed} records are of the same runs in other figures or `{QUEUE}`.")
    notes += filter(None, [_missing(groups, list(every.values()))])
    command = "\n$ ".join(filter(None, [first["command"], later["command"]]))
    return first | {"notes": notes, "command": command}


def _outdated(note: str) -> bool:
    return any(words in note for words in OUTDATED)


def _of_other_figures(groups: Sequence[Group], kind: Kind) -> list[Record]:
    """Records of these groups' runs that are stored anywhere, under the groups' names."""
    known = stored(*kind)
    return [
        replace(known[method, run], group=group.name)
        for group in groups
        for method, run in group.members()
        if (method, run) in known
    ]


@lru_cache
def stored(
    order: Order, h_step: HStep, scale: Scale = SCALE, queue: Path = FIGURES_FILE
) -> dict[tuple[str, PlannedRun], Record]:
    """The records of all files and of the queue, by method and run.

    The runs have the defaults of a group for order and h step. Methods without an h step have the
    same records for both forms; so have two-step methods, where MAC starts.
    """
    known: dict[tuple[str, PlannedRun], Record] = {}
    if h_step == "plain":
        other = stored(order, "monotone", scale, queue).items()
        known |= {key: record for key, record in other if key[0] not in PAPERS}
    queued = [
        row
        for row in _lines(queue)
        if row["order"] in (None, order) and row["h_step"] in (None, h_step)
    ]
    for name, figure in FIGURES.items():
        if not isinstance(figure, GroupFigure):
            continue
        groups = figure.groups(scale)
        runs = {
            (group.name, method, run.hash_function, run.n_bits, run.seed): (method, run)
            for group in groups
            for method, run in group.members()
        }
        files = [
            _read(f"{name}{data}{part}{ENDINGS[order, h_step]}.json") or EMPTY
            for data, part in product(("", *(f"-{each}" for each in APART)), ("", "-later"))
        ]
        for results in [*files, {"results": [row for row in queued if row["figure"] == name]}]:
            known |= {runs[r.key]: r for r in _records(groups, results) if r.key in runs}
    return known


def _stands(earlier: dict[str, Any] | None, before: claims.Verdict, after: claims.Verdict) -> bool:
    """Return True if the earlier verdict on a claim still stands.

    It does where the file lacks the numbers by which it was judged; but a test that looks at them,
    and finds that they cannot tell, replaces it.
    """
    if earlier is None or claims.UNTESTED[1] in earlier["numbers"]:
        return False
    unchanged = (before.holds, before.numbers) == (after.holds, after.numbers)
    lacking = after.holds is None and after.numbers.endswith((claims.UNTESTED[1], claims.REST))
    return lacking or (unchanged and _form(earlier["numbers"]) == _form(after.numbers))


def _form(numbers: str) -> list[str]:
    """The words of a sentence: those of another test, or of an older form of it, are others."""
    return re.findall("[a-z]{3,}", re.sub(r"\((?!needed: ).*?\)", "", numbers))


def _alike(records: Sequence[Record]) -> list[Record]:
    """Mark all records as having all radii, or none: a claim about all radii is of all runs."""
    all_radii = all(record.all_radii for record in records)
    return [replace(record, all_radii=all_radii) for record in records]


def _records(groups: Sequence[Group], result: dict[str, Any]) -> list[Record]:
    """The records of a file, with the points that older files do not tell."""
    points = {group.name: group.data.n_train for group in groups}
    return [
        replace(record, points=record.points or points.get(record.group, 0))
        for record in numbers.records(result["results"])
    ]


def _missing(groups: Sequence[Group], records: Sequence[Record]) -> str:
    """Runs without a record in the panels on the data sets that were run."""
    seeds = 1 + max(record.seed for record in records)
    asked = [replace(group, seeds=min(seeds, group.seeds)) for group in _run(groups, records)]
    return missing(asked, records)


def _with_methods(groups: Sequence[Group], methods: Collection[str]) -> list[Group]:
    """The groups with no others than these methods."""
    return [replace(g, methods=tuple(m for m in g.methods if m in methods)) for g in groups]


def _run(groups: Sequence[Group], records: Sequence[Record]) -> list[Group]:
    """The groups on the data sets that were run."""
    names = {record.group for record in records}
    data = {group.data.name for group in groups if group.name in names}
    return [group for group in groups if group.data.name in data]


def table(figure: Figure, results: Results) -> str:
    """The commands, what is missing, and the verdicts in both settings."""
    shown = [column for column in COLUMNS if column[1] == "monotone" or column in results]
    rows = [
        [
            claim.words + (" †" if claim.ours else ""),
            *(_cell(results, column, claim.words) for column in shown),
        ]
        for claim in figure.claimed
    ]
    if not results:
        head = f"Not run at the paper's size: `auxhash reproduce {figure.name} --scale paper`.\n\n"
    else:
        commands = "\n".join(dict.fromkeys(f"$ {result['command']}" for result in results.values()))
        noted = "".join(f"{note}\n\n" for note in notes(results))
        head = f"```text\n{commands}\n```\n\n{noted}"
    columns = ["claim", *(COLUMNS[column] for column in shown)]
    lines = [_line(columns), "|---" * len(columns) + "|", *map(_line, rows)]
    return head + "\n".join(lines) + "\n"


def notes(results: Results) -> list[str]:
    """Notes on the runs for the reader; each once, with its setting if only one has it."""
    kinds_of: dict[str, list[Kind]] = {}
    for kind, result in results.items():
        for note in result["notes"]:
            kinds_of.setdefault(note, []).append(kind)
    return [
        note if len(kinds) == len(results) else f"{_named(kinds)}: {note}"
        for note, kinds in kinds_of.items()
    ]


def _named(kinds: list[Kind]) -> str:
    return " and ".join(COLUMNS[kind] for kind in kinds).capitalize()


def _cell(results: Results, column: Kind, claim: str) -> str:
    verdicts = results.get(column, {"verdicts": []})["verdicts"]
    known = next((verdict for verdict in verdicts if verdict["claim"] == claim), None)
    if known is None:
        return NOT_RUN
    cases = f" ({known['cases']})" if "cases" in known else ""
    return f"**{known['verdict']}**{cases}. {known['numbers']}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, made in tables().items():
        path.write_text(made, "utf-8")
    runpy.run_path(str(Path(__file__).parent / "summary.py"), run_name="__main__")
