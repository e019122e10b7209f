"""Data sets, each under its protocol; see `load`, and `from_arrays` for your own.

data = load("cifar10-gist", n_train=10_000)
data.train.X, data.base.y, data.query.images, data.protocol
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from auxhash.compute import context

if TYPE_CHECKING:
    from auxhash.experiments.datasets.arrays import from_arrays
    from auxhash.experiments.datasets.dataset import Dataset, Points
    from auxhash.experiments.datasets.fetch.sources import Collection, DataError
    from auxhash.experiments.datasets.infinite_mnist import InfiniteMNIST
    from auxhash.files.chunks import from_chunks
    from auxhash.files.vectors import read_vectors, write_vectors

__all__ = [
    "REGISTRY",
    "DataError",
    "Dataset",
    "InfiniteMNIST",
    "Points",
    "from_arrays",
    "from_chunks",
    "load",
    "read_vectors",
    "write_vectors",
]

# Imported at first use: to look up the name of a data set imports nothing heavy.
_HOMES = {
    "DataError": "experiments.datasets.fetch.sources",
    "Dataset": "experiments.datasets.dataset",
    "InfiniteMNIST": "experiments.datasets.infinite_mnist",
    "Points": "experiments.datasets.dataset",
    "from_arrays": "experiments.datasets.arrays",
    "from_chunks": "files.chunks",
    "read_vectors": "files.vectors",
    "write_vectors": "files.vectors",
}


@dataclass(frozen=True)
class RegistryEntry:
    """One data set of the registry; its module is imported when it is needed."""

    about: str
    module: str
    loader: str = "load"
    collections: tuple[str, ...] = ("FILES",)
    check: str | None = None

    def _part(self, name: str) -> Any:
        return getattr(import_module(f"auxhash.experiments.datasets.{self.module}"), name)

    @property
    def load(self) -> Callable[..., "Dataset"]:
        loader: Callable[..., Dataset] = self._part(self.loader)
        return loader

    @property
    def files(self) -> "tuple[Collection, ...]":
        """The files that must be in the cache; the data set itself first, then a model."""
        return tuple(self._part(name) for name in self.collections)

    def check_installed(self) -> None:
        """Raise ImportError where a package is missing that the data set is made with."""
        if self.check is not None:
            self._part(self.check)()


def _embedded(about: str, module: str, loader: str = "load") -> RegistryEntry:
    return RegistryEntry(about, module, loader, ("FILES", "MODEL"), "check_installed")


REGISTRY = {
    "digits": RegistryEntry(
        "1,797 digits, 8 x 8 pixels, inside scikit-learn", "digits", collections=()
    ),
    "mnist": RegistryEntry("70,000 digits, 28 x 28 pixels", "mnist"),
    "fashion-mnist": RegistryEntry("70,000 pictures of clothes, 28 x 28 pixels", "fashion_mnist"),
    "infinite-mnist": RegistryEntry("1,000,000 deformed digits, 28 x 28 pixels", "infinite_mnist"),
    "cifar10": RegistryEntry("60,000 colour images, 32 x 32 pixels", "cifar10"),
    "cifar10-gist": RegistryEntry("the same in 320 GIST features", "cifar10_gist"),
    "siftsmall": RegistryEntry("10,000 SIFT descriptors", "sift", "load_small", ("SMALL",)),
    "sift1m": RegistryEntry("1,000,000 SIFT descriptors", "sift", "load", ("FULL",)),
    "cifar10-sift": RegistryEntry(
        "1,000,000 SIFT descriptors of CIFAR-10 (OpenCV)", "cifar10_sift"
    ),
    "glove-100": RegistryEntry(
        "341,479 words, GloVe vectors of 100 features (PDDL 1.0)",
        "glove",
        "load_100",
        ("WORDS_100",),
    ),
    "glove-50": RegistryEntry(
        "400,000 words, GloVe vectors of 50 features (PDDL 1.0)",
        "glove",
        "load_50",
        ("WORDS_50",),
    ),
    "debian-minilm": _embedded(
        "60,000 package descriptions and titles in 384 features (free licences)", "debian"
    ),
    "debian-minilm-small": _embedded("5,000 of them", "debian", "load_small"),
    "wordnet-minilm": _embedded(
        "116,919 definitions and examples in 384 features (WordNet licence)", "wordnet"
    ),
    "wordnet-minilm-small": _embedded("5,000 of them", "wordnet", "load_small"),
    "cifar10-efficientnet": _embedded(
        "CIFAR-10 in 1,280 features of EfficientNet-Lite0", "cifar10_efficientnet"
    ),
    "cifar10-efficientnet-small": _embedded("5,000 of them", "cifar10_efficientnet", "load_small"),
}


def entry(name: str) -> RegistryEntry:
    """The registry's entry, or a ValueError that suggests the name that was meant."""
    if name in REGISTRY:
        return REGISTRY[name]
    from auxhash.compute.checks import unknown  # here, since it imports NumPy

    raise unknown("data set", name, REGISTRY)


def load(name: str, cosine: bool = False, n_jobs: int | None = None, **options: Any) -> "Dataset":
    """Load a data set by name, fetching its files where the cache lacks them.

    Args:
        name: see `REGISTRY`, or `auxhash data list`.
        cosine: centre by the mean of the training points and normalise, so that Euclidean
            distance is cosine distance.
        n_jobs: threads; None takes every core that this process may use.
        options: n_train, n_base, n_query (None: all) and seed, those that the set has;
            cifar10-sift, GloVe and texts also have n_neighbors, and GloVe unit_length.

    Raises ValueError for unknown names, TypeError for options the set does not have, and
    DataError if files are wrong or cannot be fetched.
    """
    loader = entry(name).load
    known = inspect.signature(loader).parameters
    for option in options:
        if option not in known:
            raise TypeError(f"{name} has no option {option!r}; it takes {', '.join(known)}")
    with context.using(n_jobs=n_jobs):
        data = loader(**options)
        return data.cosine() if cosine else data


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"auxhash.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'auxhash.experiments.datasets' has no attribute {name!r}")
