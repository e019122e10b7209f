"""reproduce: run what a figure needs, then report on it. The report only reads, it never trains."""

import json
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from auxhash.compute.version import __version__
from auxhash.experiments.cells import Cells
from auxhash.experiments.figures import EVERY, get
from auxhash.experiments.figures.figure import ALL, Figure, FigureContent, Part
from auxhash.experiments.page import page
from auxhash.experiments.scales import ORDERS, SCALES, Scale, described, resolved
from auxhash.files.writing import writing
from auxhash.mac.loop import HStep, Returned
from auxhash.mac.presets import Order


@dataclass(frozen=True)
class Reproduction:
    """One figure at one scale: where its cells are, and which part of it is wanted."""

    figure: Figure
    scale: Scale
    cells: Cells
    part: Part = ALL

    @property
    def command(self) -> str:
        """The command that made this, for readers who want to repeat it."""
        usual = SCALES[self.scale.name].seeds
        seeds = f" --seeds {self.scale.seeds}" if self.scale.seeds != usual else ""
        size = self.scale
        of_mac = f"--order {size.order} --h-step {size.h_step} --iterate {size.iterate}"
        scale = f"--scale {size.name} {of_mac}{seeds}{self.part}"
        return f"auxhash reproduce {self.figure.name} {scale}"

    def run(self, console: Console, verbose: int = 1) -> list[str]:
        """Run what is not in the cells yet; return what failed, which does not stop the rest."""
        jobs = self.figure.jobs(self.scale, self.part)
        failed = []
        columns = (
            TextColumn("{task.fields[figure]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=console, disable=not verbose) as bar:
            task = bar.add_task("", total=len(jobs), figure=self.figure.name)
            for job in jobs:
                bar.update(task, description=str(job))
                configuration = job.configuration()
                try:
                    if configuration not in self.cells:
                        self.cells.write(configuration, *job.run())
                except Exception as error:
                    why = traceback.format_exception_only(error)[-1].strip()
                    failed.append(f"{job}: {why}")
                bar.advance(task)
            bar.update(task, description="")
        return failed

    def report(self, output: Path, numbers: Path | None = None) -> FigureContent:
        """Write the page, and the numbers and verdicts as JSON where asked for."""
        content = self._content()
        one = self.figure
        about = f"{one.about} {described(self.scale)} Setting: {ORDERS[self.scale.order]}."
        _write(output, page(one.name, f"{one.number}: {one.title}", about, content, self.command))
        if numbers is not None:
            result = {
                "figure": self.figure.name,
                "command": self.command,
                "order": self.scale.order,
                "h_step": self.scale.h_step,
                "iterate": self.scale.iterate,
                "version": __version__,
                "notes": list(content.notes),
                "protocol": dict(content.protocol),
                "verdicts": [
                    {"claim": v.words, "verdict": v.word, "numbers": v.numbers, "ours": v.ours}
                    for v in content.verdicts
                ],
                "results": content.numbers,
            }
            _write(numbers, _compact(result))
        return content

    def _content(self) -> FigureContent:
        """Content from the runs; at a scale that proves nothing, with no claim judged."""
        content = self.figure.content(self.scale, self.cells, self.part)
        if not self.scale.proves_nothing:
            return content
        verdicts = [replace(verdict, judged=False) for verdict in content.verdicts]
        return replace(
            content, verdicts=verdicts, notes=[self.scale.proves_nothing, *content.notes]
        )


def _compact(content: dict[str, Any]) -> str:
    """JSON with one line per result: short, and one changed number changes one line."""
    head = json.dumps({k: v for k, v in content.items() if k != "results"}, indent=1)
    results = ",\n  ".join(json.dumps(result, allow_nan=False) for result in content["results"])
    return f'{head.removesuffix("}").rstrip()},\n "results": [\n  {results}\n ]\n}}\n'


def _write(path: Path, text: str) -> None:
    with writing(path) as temporary:
        temporary.write_text(text, "utf-8")


def _page_name(figure: Figure, scale: Scale) -> str:
    usual = SCALES[scale.name]
    names = scale.h_step, scale.iterate, scale.order
    unusual = [n for n in names if n not in (usual.h_step, usual.iterate, usual.order)]
    return f"{'-'.join([figure.name, scale.name, *unusual])}.html"


def listed() -> list[dict[str, str]]:
    """Names of the figures, their numbers in the paper, and their titles."""
    return [
        {"figure": one.name, "paper": one.number, "what it shows": one.title}
        for one in EVERY.values()
    ]


def main(
    figure: str,
    scale: str,
    order: Order,
    h_step: HStep,
    iterate: Returned,
    seeds: int | None,
    part: Part,
    folder: str,
    run_only: bool,
    report_only: bool,
    output: str | None,
    numbers: str | None,
    verbose: int = 1,
) -> list[dict[str, Any]]:
    """Run and report one figure, or all; return where the pages are, notes and verdicts."""
    every = list(EVERY.values()) if figure == "all" else [get(figure)]
    if len(every) > 1 and (output or numbers or part):
        raise ValueError(
            "--output, --numbers, --data, --bits, --method, --without and --own are for one "
            "figure, not for all"
        )
    if run_only and (report_only or output or numbers):
        raise ValueError(
            "--run-only writes no page: leave out --report-only, --output and --numbers"
        )
    size = replace(resolved(SCALES[scale]), order=order, h_step=h_step, iterate=iterate)
    if seeds is not None:
        size = replace(size, seeds=seeds)
    console = Console(stderr=True)
    reports = []
    for one in every:
        reproduction = Reproduction(one, size, Cells(folder), part)
        if not report_only:
            for failure in reproduction.run(console, verbose):
                console.print(f"[red]failed[/red] {escape(failure)}")
        if not run_only:
            page_path = Path(output or Path(folder) / _page_name(one, size))
            content = reproduction.report(page_path, Path(numbers) if numbers else None)
            verdicts = [
                {"verdict": verdict.word, "claim": verdict.words, "numbers": verdict.numbers}
                for verdict in content.verdicts
            ]
            reports.append(
                {
                    "figure": one.name,
                    "paper": one.number,
                    "scale": described(size),
                    "page": str(page_path),
                    "notes": list(content.notes),
                    "verdicts": verdicts,
                }
            )
    return reports
