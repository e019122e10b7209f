"""Baselines: the methods that the paper compares with, and further ones for comparison.

Each is a hasher that is used like `auxhash.MACHash`. Unsupervised ones ignore labels; supervised
ones demand labels or, where they learn from pairs, an affinity.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxhash.learn.baselines.agh import AGH
    from auxhash.learn.baselines.autoencoder import BinaryAutoencoder
    from auxhash.learn.baselines.bre import BRE
    from auxhash.learn.baselines.ccaitq import CCAITQ
    from auxhash.learn.baselines.fasthash import FastHash
    from auxhash.learn.baselines.ilh import ILH
    from auxhash.learn.baselines.itq import ITQ
    from auxhash.learn.baselines.ksh import KSH
    from auxhash.learn.baselines.logitlsh import LogitLSH
    from auxhash.learn.baselines.lsh import LSH
    from auxhash.learn.baselines.onehot import OneHot
    from auxhash.learn.baselines.pcarr import PCARR
    from auxhash.learn.baselines.sdh import SDH
    from auxhash.learn.baselines.sh import SH
    from auxhash.learn.baselines.sph import SPH
    from auxhash.learn.baselines.sth import STH
    from auxhash.learn.baselines.tpca import TPCA
    from auxhash.learn.baselines.tsh import TSH

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
        return getattr(import_module(f"auxhash.learn.baselines.{home}"), name)
    raise AttributeError(f"module 'auxhash.learn.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
