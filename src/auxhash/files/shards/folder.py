"""A folder of files of codes, one for each file of points: resumable file by file.

A file of codes says what it was made of: the model, the file of points as it was, the columns. What
was made before of the same is not made again; a file of points that has changed is encoded anew.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from auxhash.compute.context import Common
from auxhash.compute.fingerprint import OtherModelError, UnknownModelWarning
from auxhash.compute.threads import Item, Output
from auxhash.compute.words import count
from auxhash.files.report import columns
from auxhash.files.shards import coding, places, reading
from auxhash.files.shards.coding import Coding, Encodes, Origin
from auxhash.files.shards.places import FileAt
from auxhash.files.shards.reading import Columns, Look

FileWork = Callable[[Item, Common, Callable[[int], None]], Output]

MAX_NAMED = 3  # files or columns that a message names


class Done(NamedTuple):
    """Numbers of files and points at the end."""

    files: int
    encoded: int  # of them, this time
    points: int


class Runner(Protocol):
    """A way to do the work: in this process, or on the workers of a cluster."""

    def each(
        self,
        work: FileWork[Item, Common, Output],
        items: Sequence[Item],
        shared: Common,
        tell: Callable[[int], None],
    ) -> Iterator[tuple[int, Output]]:
        """Run work(item, shared, tell) for all items; yield each item's number and its result.

        `tell` is called with the numbers of points that were encoded; on a cluster, file by file.
        """


class Here:
    """A runner in this process, one file after the other."""

    def each(
        self,
        work: FileWork[Item, Common, Output],
        items: Sequence[Item],
        shared: Common,
        tell: Callable[[int], None],
    ) -> Iterator[tuple[int, Output]]:
        for number, item in enumerate(items):
            yield number, work(item, shared, tell)


@dataclass(frozen=True)
class Folder:
    """Files of points that match a pattern, and the folder of their codes.

    Args:
        pattern: any address that fsspec knows, such as 'points/*.parquet'.
        output: the folder, as well; the files in it are called as those of the points are, below
            the folder that the pattern begins with.
        model: what encodes; its codes are not mixed with those of another.
        columns: those of ids and of labels.
    """

    pattern: str
    output: str
    model: Encodes
    columns: Columns

    def encode(
        self, runner: Runner, started: Callable[[int, int], None], tell: Callable[[int], None]
    ) -> Done:
        """Encode what is not encoded yet.

        `started` is called once, with the number of all points and of those that are encoded
        already, and `tell` with the points that were encoded since.
        """
        sources, targets = self._places()
        looks = self._looks(runner, sources)
        before = self._before(runner, targets)
        codings = self._codings(sources, targets, looks)
        left = [one for one, old in zip(codings, before, strict=True) if one.origin != old]
        points = sum(one.n for one in looks)
        started(points, points - sum(one.origin["points"] for one in left))
        for number, encoded in runner.each(coding.coded, left, self.model, tell):
            if encoded != left[number].origin["points"]:
                raise ValueError(f"{left[number].source} changed while it was encoded")
        places.remove_leftovers(places.folder_of(self.output), targets)
        return Done(len(codings), len(left), points)

    def _places(self) -> tuple[list[FileAt], list[FileAt]]:
        """The files of points, and the files of codes, which are others."""
        root, sources = places.match(self.pattern)
        output = places.folder_of(self.output)
        first, *others = sources
        if first.suffix not in reading.KINDS:
            raise ValueError(f"{first} must end in {' or '.join(reading.KINDS)}")
        for other in others:
            if other.suffix != first.suffix:
                raise ValueError(f"files must be of one kind, got {first.name} and {other.name}")
        for place in sources:
            same = type(place.system) is type(output.system)
            if same and f"{place.path}/".startswith(f"{output.path}/"):
                raise ValueError(
                    f"{place} matches {self.pattern}, and is in the folder {self.output} of the "
                    "codes: give another with -o"
                )
        targets = []
        for place in sources:
            name = place.path[len(root) :].lstrip("/").removesuffix(place.suffix)
            targets.append(FileAt(output.system, f"{output.path}/{name}.parquet"))
        return sources, targets

    def _looks(self, runner: Runner, sources: list[FileAt]) -> list[Look]:
        """Look at all files; ValueError unless they are alike, and fit the model."""
        work = partial(_look, columns=self.columns)
        by_number = dict(runner.each(work, sources, None, lambda points: None))
        looks = [by_number[number] for number in range(len(sources))]
        first, width = looks[0], self.model.n_features_in_
        if first.width != width:
            raise ValueError(
                f"{sources[0]} has {count(first.width, 'feature')}, and the model was learnt from "
                f"{width}"
            )
        names = getattr(self.model, "feature_names_in_", None)
        if names is not None and first.named and first.features != tuple(names):
            raise ValueError(
                f"{sources[0]} has {columns(first.features)}, and the model was learnt from "
                f"{columns(names.tolist())}, in this order"
            )
        for place, one in zip(sources, looks, strict=True):
            if one.kind != first.kind:
                raise ValueError(
                    f"columns differ between files: {_describe(one, place)}, but "
                    f"{_describe(first, sources[0])}"
                )
        return looks

    def _before(self, runner: Runner, targets: list[FileAt]) -> list[Origin | None]:
        """Origin of each file of codes that is there already."""
        there = set(places.inside(places.folder_of(self.output)))
        known = [target for target in targets if target in there]
        foreign = sorted(place.name for place in there - set(targets) if place.suffix == ".parquet")
        if foreign:
            more = ["..."] if len(foreign) > MAX_NAMED else []
            examples = ", ".join([*foreign[:MAX_NAMED], *more])
            warnings.warn(
                f"{self.output} holds {count(len(foreign), 'file')} of no file that matches "
                f"{self.pattern} ({examples}): whoever reads the folder reads them, too",
                stacklevel=2,
            )
        by_number = dict(runner.each(_origin, known, None, lambda points: None))
        origins = {known[number]: origin for number, origin in by_number.items()}
        self._check_models({str(place): one.get("fingerprint") for place, one in origins.items()})
        return [origins.get(target) for target in targets]

    def _check_models(self, stated: dict[str, str | None]) -> None:
        """Raise if a file, by its name here, was made by another model; warn if it states none."""
        fingerprint = self.model.fingerprint
        for place, other in stated.items():
            if other not in (None, fingerprint):
                raise OtherModelError(
                    f"{place} was made by model {other}, and this is model {fingerprint}: give "
                    "another folder with -o, or remove them"
                )
        unknown = [place for place, other in stated.items() if other is None]
        if unknown:
            warnings.warn(
                f"{self.output} holds {count(len(unknown), 'file')} of codes of an unknown model, "
                f"such as {unknown[0]}: encoded again",
                UnknownModelWarning,
                stacklevel=2,
            )

    def _codings(
        self, sources: list[FileAt], targets: list[FileAt], looks: list[Look]
    ) -> list[Coding]:
        codings, first, fingerprint = [], 0, self.model.fingerprint
        for source, target, one in zip(sources, targets, looks, strict=True):
            first_id = first if one.ids == reading.NUMBERED else 0
            origin = {
                "fingerprint": fingerprint,
                "bits": self.model.n_bits,
                "source": str(source),
                "mark": one.mark,
                "points": one.n,
                "features": list(one.features),
                "ids": self.columns.id if one.features else one.ids,
                "first": first_id,
            }
            codings.append(Coding(source, target, self.columns, first_id, origin))
            first += one.n
        return codings


def _look(place: FileAt, shared: None, tell: Callable[[int], None], columns: Columns) -> Look:
    return reading.look(place, columns)


def _origin(place: FileAt, shared: None, tell: Callable[[int], None]) -> Origin:
    try:
        return coding.origin_of(place)
    except coding.ForeignFileError as error:
        raise ValueError(
            f"{error}, and would be replaced: give another folder with -o, or remove it"
        ) from None


def _describe(one: Look, place: FileAt) -> str:
    names = one.features[:MAX_NAMED]
    more = f", ... ({len(one.features)})" if len(one.features) > MAX_NAMED else ""
    features = f" in {', '.join(names)}{more}" if names else ""
    return f"{place} has {count(one.width, 'feature')}{features}, ids of {one.ids}"
