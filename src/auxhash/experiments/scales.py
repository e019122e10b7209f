"""The scales of the figures: the paper's sizes, some minutes' work, or seconds for the tests."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from auxhash.compute.words import count
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points, ground_truth
from auxhash.mac.loop import HStep, Returned
from auxhash.mac.presets import ORDER, Order

SIFT, STAND_IN = "sift1m", "cifar10-sift"
PAPERS = ("cifar10-gist", "infinite-mnist", SIFT)  # the data sets that the paper has


@dataclass(frozen=True)
class Data:
    """A data set as a figure uses it; None stands for the set's own size."""

    name: str
    n_train: int
    n_base: int | None = None
    n_query: int = 2_000
    cosine: bool = False
    labelled: bool = True  # False: points have no labels, and neighbours are the ground truth
    n_true: int = 0  # nearest base points that are the ground truth, where there are no labels

    @property
    def stands_in(self) -> bool:
        """Return True if this takes the place of SIFT1M, whose files are not here."""
        return self.name == STAND_IN

    def in_place_of(self, place: str) -> str:
        """Title of a panel: the paper's data set, or the one taken in its place."""
        return place if self.name in PAPERS else f"{self.name} in the place of {place}"

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of points in base and test set; what the settings leave open is loaded."""
        return {"base": self.n_base or len(self.load().base), "test set": self.n_query}

    def load(self) -> Dataset:
        """Points without ground truth: what is trained on does not depend on it."""
        return _load(replace(self, n_true=0))

    def judged(self) -> Dataset:
        """Points with ground truth."""
        return _judged(self)


@lru_cache(maxsize=2)
def _load(data: Data) -> Dataset:
    sizes: dict[str, Any] = {"n_train": data.n_train, "n_query": data.n_query}
    if data.n_base is not None:
        sizes["n_base"] = data.n_base
    if data.stands_in:
        sizes["n_neighbors"] = 0
    dataset = datasets.load(data.name, **sizes)
    if not data.labelled:
        train, base, query = (
            Points(part.X) for part in (dataset.train, dataset.base, dataset.query)
        )
        protocol = dataset.protocol.partition(" Ground truth:")[0]
        dataset = Dataset(dataset.name, train, base, query, protocol)
    return dataset.cosine() if data.cosine else dataset


@lru_cache(maxsize=2)
def _judged(data: Data) -> Dataset:
    dataset = data.load()
    if data.labelled:
        return dataset
    truth = ground_truth(dataset.base.X, dataset.query.X, data.n_true)
    line = f" Ground truth: the {truth.shape[1]} nearest base points."
    query = replace(dataset.query, neighbors=truth)
    return replace(dataset, query=query, protocol=dataset.protocol + line)


@dataclass(frozen=True)
class Scale:
    """Sizes of everything that the figures have in common."""

    name: str
    images: Data  # CIFAR's place
    deformed: Data  # Infinite MNIST's place
    descriptors: Data  # SIFT1M's place
    n_train_compared: int  # training points where methods are compared on SIFT1M
    bits: tuple[int, ...]  # of the supervised figures
    bits_compared: tuple[int, ...]
    bits_descriptors: tuple[int, ...]
    pairs: tuple[int, int]  # kappa+, kappa-
    pairs_far: tuple[int, int]  # with more dissimilar points, for unsup-nestederr1
    mu: float  # factor on the paper's mu_1: pairs per point, relative to the paper's
    seeds: int
    seeds_quad: int  # quad takes so much longer that it gets fewer
    sketches: int  # problems small enough to enumerate, for free-codes
    n_train_libsvm: int  # training points where LIBSVM trains the hash functions
    order: Order = ORDER  # of the blocks of cut: "fixed" for all bits, or "random" for each
    h_step: HStep = "plain"  # of MAC: the paper's, or ours, "monotone"
    iterate: Returned = "last"  # which MAC returns: the paper's, or ours, "lowest"
    proves_nothing: str = ""  # why, for the top of its pages; then no claim gets a verdict


PAPER = Scale(
    "paper",
    Data("cifar10-gist", 10_000),
    Data("infinite-mnist", 10_000),
    # K = 20 000 is fig. 7's; the paper does not give that of figs. 10 to 12.
    Data(SIFT, 10_000, 1_000_000, 10_000, labelled=False, n_true=20_000),
    n_train_compared=5_000,
    bits=(16, 32, 48),
    bits_compared=(16, 32, 48, 64),
    bits_descriptors=(8, 16, 24, 32),
    pairs=(100, 500),
    pairs_far=(50, 1_000),
    mu=1.0,
    seeds=3,
    seeds_quad=1,
    sketches=100,
    n_train_libsvm=2_000,
)

SMALL = Scale(
    "small",
    Data("cifar10-gist", 2_000, 10_000, 500),
    Data("infinite-mnist", 600, 10_000, 500),
    Data(SIFT, 2_000, 10_000, 500, labelled=False, n_true=200),
    n_train_compared=2_000,
    bits=(12, 24),
    bits_compared=(12, 24),
    bits_descriptors=(8, 24),
    pairs=(20, 100),
    pairs_far=(10, 200),
    mu=0.2,
    seeds=2,
    seeds_quad=1,
    sketches=30,
    n_train_libsvm=600,
)

TINY = Scale(
    "tiny",
    Data("digits", 60, 200, 20),
    Data("digits", 50, 150, 20),
    Data("digits", 60, 200, 20, labelled=False, n_true=10),
    n_train_compared=50,
    bits=(3, 6),
    bits_compared=(6,),
    bits_descriptors=(6,),
    pairs=(5, 25),
    pairs_far=(3, 30),
    mu=0.1,
    seeds=2,
    seeds_quad=1,
    sketches=3,
    n_train_libsvm=60,
    proves_nothing=(
        "This scale proves nothing. It only shows, within seconds, that everything runs: a few "
        "dozen of scikit-learn's handwritten digits take the place of the paper's data, and no "
        "claim is judged by them."
    ),
)

ORDERS: dict[Order, str] = {"fixed": "blocks in one order", "random": "blocks in random order"}
H_STEPS: dict[HStep, str] = {
    "plain": "every h step fits all classifiers",
    "monotone": "in the h step a bit keeps its old classifier where that is better",
}
RETURNED: dict[Returned, str] = {
    "last": "its last iterate",
    "lowest": "the lowest L(h) of its iterates",
}
SCALES = {scale.name: scale for scale in (PAPER, SMALL, TINY)}


def described(scale: Scale) -> str:
    """The sizes of a scale, in a sentence."""
    parts = scale.images, scale.deformed, scale.descriptors
    train = sorted({part.n_train for part in parts})
    points = f"{train[0]:,} to {train[-1]:,}" if len(train) > 1 else f"{train[0]:,}"
    base = {part.n_base for part in parts}
    searched = "all points" if None in base else f"at most {max(filter(None, base)):,}"
    other = "" if scale.name == PAPER.name else "; the paper's sizes are --scale paper"
    return (
        f"Scale: {scale.name}: {points} training points, {searched} searched, "
        f"{count(scale.seeds, 'seed')}{other}."
    )


def resolved(scale: Scale) -> Scale:
    """The scale, with the stand-in for SIFT1M if its files are not in the cache."""
    (files,) = datasets.entry(SIFT).files
    if scale.descriptors.name != SIFT or files.present():
        return scale
    return replace(scale, descriptors=replace(scale.descriptors, name=STAND_IN))
