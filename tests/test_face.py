"""The public names: everything is imported from `auxhash`, whatever room it lives in."""

import pydoc
import sys
from importlib import import_module

import pytest

import auxhash
from tests.programs import run_python

SHORT = [*auxhash._MODULES.items(), ("zstep.quad", "auxhash.mac.zstep.quad")]


@pytest.mark.parametrize(("name", "home"), [pair for pair in SHORT if pair[0] != "torch"])
def test_a_short_name_is_the_module_itself(name, home):
    assert import_module(f"auxhash.{name}") is import_module(home)
    assert sys.modules[home].__spec__.name == home


@pytest.mark.parametrize(
    "statement",
    [
        "from auxhash.refine import Refine",
        "from auxhash.zstep import Cut",
        "from auxhash.stores import Having",
        "from auxhash.model import LearntFrom, Model; import auxhash; auxhash.Model.load",
        "from auxhash.index import rerank",
        "from auxhash.client import Client; import sys; assert 'numpy' not in sys.modules",
        "from auxhash.datasets import from_chunks",
        "from auxhash.dask import DaskIndex, DaskMACHash, DaskNeighborHash, infinite_mnist",
        "from auxhash.codes import from_order, hamming, pack, to_order, unpack",
        "from auxhash import affinity, hashfunctions, mac, zstep; mac.MAC; mac.lowest",
        "import auxhash.paper; auxhash.paper.maccut",
        "import auxhash.index.rerank as rerank; rerank.by_outputs",
    ],
)
def test_what_the_documentation_imports(statement):
    """In a process of its own: nothing else has been imported before."""
    run_python(statement)


def test_every_public_name_is_there():
    for name in auxhash.__all__:
        assert getattr(auxhash, name) is not None
        assert name in dir(auxhash)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        auxhash.nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import_module("auxhash.zstep.nothing")


@pytest.mark.parametrize("name", [*auxhash.__all__, "dask"])
def test_help_names_the_types(name):
    shown = getattr(auxhash, name, None) or import_module(f"auxhash.{name}")
    members = getattr(shown, "__all__", ()) if name == "baselines" else ()
    for each in (shown, *(getattr(shown, member) for member in members)):
        text = pydoc.plain(pydoc.render_doc(each))
        assert "numpy._typing" not in text
