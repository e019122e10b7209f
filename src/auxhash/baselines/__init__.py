"""Baselines: the methods that the paper compares with, and further ones for comparison.

Each is a hasher that is used like `auxhash.MACHash`. Unsupervised ones ignore labels; supervised
ones demand labels or, where they learn from pairs, an affinity.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxhash.baselines.agh import AGH
    from auxhash.baselines.autoencoder import BinaryAutoencoder
    from auxhash.baselines.bre import BRE
    from auxhash.baselines.ccaitq import CCAITQ
    from auxhash.baselines.fasthash import FastHash
    from auxhash.baselines.ilh import ILH
    from auxhash.baselines.itq import ITQ
    from auxhash.baselines.ksh import KSH
    from auxhash.baselines.logitlsh import LogitLSH
    from auxhash.baselines.lsh import LSH
    from auxhash.baselines.onehot import OneHot
    from auxhash.baselines.pcarr import PCARR
    from auxhash.baselines.sdh import SDH
    from auxhash.baselines.sh import SH
    from auxhash.baselines.sph import SPH
    from auxhash.baselines.sth import STH
    from auxhash.baselines.tpca import TPCA
    from auxhash.baselines.tsh import TSH

__all__ = [
    "AGH",
    "BRE",
    "CCAITQ",
    "ILH",
    "ITQ",
    "KSH",
    "LSH",
    "PCARR",
    "SDH",
    "SH",
    "SPH",
    "STH",
    "TPCA",
    "TSH",
    "BinaryAutoencoder",
    "FastHash",
    "LogitLSH",
    "OneHot",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = "autoencoder" if name == "BinaryAutoencoder" else name.lower()
        return getattr(import_module(f"auxhash.baselines.{home}"), name)
    raise AttributeError(f"module 'auxhash.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
