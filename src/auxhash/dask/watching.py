"""Progress bar and Ctrl-C of a training on a cluster, on the client."""

import math
from types import TracebackType
from typing import Self

from auxhash.compute.bars import new_bar
from auxhash.learn.smooth import N_REPORTS
from auxhash.learn.training import Settings
from auxhash.learn.training.interrupt import Watch
from auxhash.learn.training.progress import describe
from auxhash.mac.loop import Step


class Watcher:
    """Progress bar that is called with each step of the training; it returns True to stop."""

    def __init__(self, watch: Watch, settings: Settings, shown: bool) -> None:
        self.watch = watch
        self.most = 1 + settings.algorithm.max_iter
        self.more = 0 if settings.refine is None else N_REPORTS
        self.refined = 0
        self.bar = new_bar(disable=not shown)
        self.task = self.bar.add_task("", total=self.most + self.more, stage="two-step")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def __call__(self, step: Step) -> bool:
        if step.mu == math.inf:
            self.refined += 1
            self.most = 1 + step.iteration - self.refined
        self.bar.update(
            self.task,
            completed=1 + step.iteration,
            total=self.most + self.more,
            description=describe(step),
            stage="refining" if self.refined else "MAC",
        )
        return self.watch.pressed
