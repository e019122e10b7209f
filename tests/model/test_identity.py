"""Equal values have equal words, in any process; whatever differs anywhere has others."""

import collections
import datetime
import decimal
import enum
import functools
import re
import textwrap
import threading
from types import ModuleType

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numba import njit
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import BallTree, KDTree
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxhash import TwoStepHash
from auxhash.learn.baselines import LogitLSH
from auxhash.learn.smooth import Refine
from auxhash.mac import losses
from auxhash.model.identity import in_words
from tests import oracle
from tests.programs import run_python

X = np.random.default_rng(0).normal(size=(60, 5))
Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def function(source, name="f", **names):
    """A function of a module of the user's own, written anew."""
    module = ModuleType("someones")
    vars(module).update(names)
    exec(textwrap.dedent(source), vars(module))
    return vars(module)[name]


def test_values_in_words_tell_them_apart():
    forest = RandomForestClassifier(5)
    values = [None, 1, 1.5, "1", True, b"1", 1j, [1, 2], (1, 2), (1, [2]), {1, 2}, {"a": 1}]
    values += [X, X[:, :4], X.astype("f4"), X.astype(">f8"), X.tolist(), np.arange(60) % 3]
    values += [np.array([]), np.array(["a"], object), np.array(["b"]), ["a"], np.array(1)]
    values += [forest, RandomForestClassifier(6), make_pipeline(StandardScaler(), forest)]
    values += [Refine(), Refine(n_steps=20), oracle.similar_or_not, losses.ksh, losses.ee]
    values += [np.random.default_rng(0), np.random.default_rng(1), np.random.RandomState(0)]
    values += [np.random.RandomState(1), decimal.Decimal(1), decimal.Decimal(2), Point(1, 2)]
    values += [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), Colour.RED, Colour.BLUE]
    values += [np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns"), 10**5000, -0.0, 0.0]
    values += [functools.partial(losses.ee, lam=2), functools.partial(losses.ee, lam=3)]
    values += [re.compile("a"), re.compile("b")]
    values += [RandomForestClassifier, np, np.add, np.exp, len, [1].append, [2].append]
    words = [in_words(value) for value in values]
    assert len(set(words)) == len(words)
    assert all(len(text) <= 80 for text in words)


def test_equal_values_have_equal_words(tmp_path):
    assert in_words(np.float64(1.5)) == in_words(1.5)
    assert in_words(np.asfortranarray(X)) == in_words(X)
    assert in_words(np.repeat(X, 2, axis=0)[::2]) == in_words(X)
    np.save(tmp_path / "X.npy", X)
    assert in_words(np.load(tmp_path / "X.npy", mmap_mode="r")) == in_words(X)
    assert in_words({"a": 1, "b": [X]}) == in_words({"b": [X.copy()], "a": 1})
    assert in_words({1: "a", "1": "b"}) == in_words({"1": "b", 1: "a"})
    assert in_words(float("nan")) == in_words(np.nan)
    assert in_words(RandomForestClassifier(5)) == in_words(RandomForestClassifier(5))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def backwards(value):
    """Build a value anew, with its dictionaries in another order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    if isinstance(value, (list, tuple)):
        return type(value)(map(backwards, value))
    return value


@given(VALUES)
def test_plain_values(value):
    assert in_words(backwards(value)) == in_words(value)


def sorted_repr(value):
    if isinstance(value, dict):
        return sorted((repr(key), sorted_repr(part)) for key, part in value.items()), "dict"
    if isinstance(value, (list, tuple)):
        return [sorted_repr(part) for part in value], type(value).__name__
    return repr(value)


@given(VALUES, VALUES)
def test_words_are_equal_only_where_values_are(one, other):
    if in_words(one) == in_words(other):
        assert sorted_repr(one) == sorted_repr(other)


@given(
    arrays.arrays(st.sampled_from(["f8", "f4", "i8", "u1", "<U3", "M8[s]"]), st.integers(1, 60)),
    st.data(),
)
def test_one_element_of_an_array(array, data):
    at = data.draw(st.integers(0, len(array) - 1))
    changed = array.copy()
    changed[at] = data.draw(arrays.from_dtype(array.dtype))
    same = changed.tobytes() == array.tobytes()
    assert (in_words(changed) == in_words(array)) == same


def test_one_element_deep_in_a_large_array():
    large = np.zeros((200_000, 3))
    others = [large.copy(order) for order in "CF"]
    for other in others:
        other[123_456, 1] = 1e-300
    words = {in_words({"validation": (array, None)}) for array in (large, *others)}
    assert len(words) == 2


def test_sparse_frames_and_masks():
    dense = np.zeros((5, 4))
    dense[2, 1] = 3
    sparse = scipy.sparse.csr_matrix(dense)
    assert in_words(sparse) == in_words(scipy.sparse.csr_matrix(dense))
    other = sparse.copy()
    other[2, 1] = 4
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert in_words(frame) == in_words(frame.copy())
    values = [sparse, other, sparse.T.tocsr(), frame, frame.rename(columns={"a": "c"})]
    values += [frame.assign(b=["x", "z"]), frame["a"], frame["b"]]
    values += [np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])]
    assert len({in_words(value) for value in values}) == len(values)


LOSS = """
    def f(d, y, b, power=2):
        inner = lambda x: np.abs(x - 1)
        return inner(d / b) ** power
    """


@pytest.mark.parametrize(
    "change",
    [
        ("- 1", "- 2"),
        ("np.abs", "np.exp"),
        ("power=2", "power=3"),
        ("b, power", "b, *, power"),
        ("d / b", "d * b"),
    ],
)
def test_a_function_that_was_edited(change):
    assert in_words(function(LOSS, np=np)) == in_words(function("\n\n" + LOSS, np=np))
    assert change[0] in LOSS
    assert in_words(function(LOSS.replace(*change), np=np)) != in_words(function(LOSS, np=np))


def test_what_a_function_uses():
    source = "def g(x):\n return x * W\ndef f(d, y, b):\n return g(d)"
    table = np.arange(5000.0)
    other = table.copy()
    other[2500] = 0
    result = [
        *(function(source, W=W) for W in (1, 2, 1.0, table, other)),
        function(source.replace("x * W", "x / W"), W=1),
    ]
    assert len({in_words(one) for one in result}) == len(result)
    assert in_words(function(source, W=table.copy())) == in_words(result[3])
    unused = function(source, W=1, V=5)
    assert in_words(unused) == in_words(result[0])


def test_closures_lambdas_and_attributes():
    def closing(value):
        return lambda d, y, b: d * value

    def plain(d, y, b):
        return d

    words = [in_words(closing(value)) for value in (1, 2, X, X + 1)]
    words += [in_words(lambda d, y, b: d), in_words(lambda d, y, b: d + 1), in_words(plain)]
    plain.reads = "distance"
    words.append(in_words(plain))
    assert len(set(words)) == len(words)
    assert in_words(closing(1)) == words[0]


def test_functions_inside_others():
    def one(d):
        return d

    def two(d):
        return d + 1

    wraps = [
        lambda f: functools.partial(f, 1),
        functools.lru_cache,
        njit,
        np.vectorize,
        lambda f: {"f": [f]},
        lambda f: type("Callable", (), {"__call__": f})(),
        lambda f: type("Callable", (), {"__call__": f}),
        lambda f: type("Callable", (), {"f": property(f)}),
        lambda f: type("Callable", (), {"f": staticmethod(f)})().f,
        lambda f: type("Bound", (), {"f": f})().f,
    ]
    for wrap in wraps:
        assert in_words(wrap(one)) == in_words(wrap(one))
        assert in_words(wrap(one)) != in_words(wrap(two))


def test_a_module_of_one_s_own_is_followed():
    words = []
    for body in ("return x", "return x + 1"):
        helpers = ModuleType("helpers_of_someone")
        exec(f"def g(x):\n {body}\ndef unused():\n return {len(words)}", vars(helpers))
        words.append(in_words(function("def f(d, y, b):\n return h.g(d)", h=helpers)))
        words.append(in_words(function("def f(d, y, b):\n return h.other(d)", h=helpers)))
    assert words[0] != words[2]
    assert words[1] == words[3]


def test_circles_end():
    source = "def g(n):\n return f(n - 1)\ndef f(n):\n return n and g(n)"
    assert in_words(function(source)) == in_words(function(source))
    assert in_words(function(source)) != in_words(function(source.replace("n - 1", "n - 2")))
    around: list[object] = [1]
    around.append({"me": around})
    assert in_words(around) == in_words(around)

    class Node:
        def __init__(self):
            self.others = []

        def __repr__(self):
            return super().__repr__()

    nodes = [Node() for _ in range(30)]
    for node in nodes:
        node.others = nodes
    assert in_words(nodes) == in_words(nodes)


def test_objects_by_what_they_hold():
    class Solver:
        def __init__(self, **parts):
            vars(self).update(parts)

    class Slotted:
        __slots__ = ("a",)

    slotted = [Slotted(), Slotted()]
    for at, one in enumerate(slotted):
        one.a = at
    assert in_words(Solver(a=1, b=X)) == in_words(Solver(b=X.copy(), a=1))
    values = [Solver(a=1), Solver(a=2), Solver(a=X), Solver(a=X + 1), *slotted]
    values += [Solver(a=1, lock=threading.Lock())]
    forests = [RandomForestClassifier(2, random_state=seed).fit(X, X[:, 0] > 0) for seed in (0, 1)]
    values += [Solver(model=forest.set_params(random_state=0)) for forest in forests]
    values += [LogitLSH(3, random_state=0).fit(X, y) for y in (X[:, 0] > 0, X[:, 1] > 0)]
    values += [TwoStepHash(3, random_state=0).fit(X, y) for y in (X[:, 0] > 0, X[:, 1] > 0)]
    assert len({in_words(value) for value in values}) == len(values)


def test_classes_of_the_same_name():
    ours = [
        type("Scaler", (StandardScaler,), {"__module__": module, "factor": factor})
        for module, factor in [("one", 1), ("two", 1), ("one", 2)]
    ]
    assert len({in_words(kind()) for kind in ours}) == 3


def test_any_process_says_the_same():
    outputs = [run_python(IN_ANOTHER, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split("\n"))) > 6


IN_ANOTHER = """
import functools
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import BallTree, KDTree
from auxhash import MACHash, losses
from auxhash.model.identity import in_words

KNOWN = {"a", "b", "c", "d"}

def f(d, y, b, more=frozenset("uvw")):
    return [x for x in KNOWN if x in {"r", "s", "t"}]

class Solver:
    kinds = {"e", "f", "g"}
    def sweep(self):
        return f, super().__repr__()

X = np.arange(60.0).reshape(30, 2)
values = [f, Solver(), Solver, KNOWN, {1: KNOWN}, MACHash(loss=f)]
values += [functools.partial(losses.ee, lam=2)]
values += [RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 9), np.random.default_rng(0)]
print("\\n".join(map(in_words, values)))
"""


def test_a_package_beside_its_record_counts_by_name(tmp_path, monkeypatch):
    """A record, as pip install --target leaves it."""
    for name in ("recorded", "unrecorded"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("class Thing:\n    size = 1\n")
    (tmp_path / "recorded-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    import recorded
    import unrecorded

    assert in_words(recorded.Thing) == "recorded.Thing"
    assert in_words(unrecorded.Thing).startswith("unrecorded.Thing (")


def test_an_object_can_say_what_it_depends_on():
    class Own:
        def __init__(self, size):
            self.size, self.noise = size, object()

        def identity_parts(self):
            return [self.size]

    assert in_words(Own(1)) == in_words(Own(1)) != in_words(Own(2))


def test_a_module_with_every_attribute_counts_by_name():
    class Everything(ModuleType):
        def __getattr__(self, name):
            return self

    assert in_words(Everything("endless")) == "module endless"


@pytest.mark.parametrize("kind", [KDTree, BallTree])
def test_a_search_leaves_a_tree_as_it_was(kind):
    """Trees of scikit-learn count their searches."""
    tree = kind(X, leaf_size=5)
    words = in_words(tree)
    tree.query(X)
    assert in_words(tree) == words == in_words(kind(X, leaf_size=5))
    others = [kind(2 * X, leaf_size=5), kind(X, leaf_size=30), kind(X, 5, metric="manhattan")]
    assert len({words, *map(in_words, others)}) == 4
