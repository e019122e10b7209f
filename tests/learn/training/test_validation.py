"""Held-out points judge the steps: by labels, by pairs, by true neighbours."""

import itertools
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import auxhash
from auxhash import EndToEndHash, MACHash, Refine, TwoStepHash, Validation
from auxhash.compute.neighbors import nearest
from auxhash.learn import paper
from auxhash.learn.training.validation import JudgedPairs, PairPrecision, judged_pairs
from auxhash.mac import affinity, losses
from auxhash.model.fitted import ByName
from auxhash.model.identity import in_words
from auxhash.search import metrics
from tests import oracle
from tests.conftest import SOAK

y = np.arange(300) % 6
X = np.random.default_rng(0).normal(size=(300, 8)) + 1.2 * np.eye(6, 8)[y]
QUERIES = np.random.default_rng(1).normal(size=(40, 8))
SMALL = {"n_bits": 8, "refine": None, "random_state": 0, "n_jobs": 1, "mu": 0.05}
FEW_PAIRS = {"n_similar": 10, "n_dissimilar": 30}


# Functions, for at the import of this file every process would compile what draws pairs.
def labels():
    return {"y": y}


@cache
def pairs():
    return {"affinity": affinity.from_labels(y, 10, 30, random_state=0)}


@cache
def near():
    return {"affinity": affinity.from_neighbors(X, 10, 30, random_state=0)}


@cache
def apart():
    return {"affinity": affinity.from_neighbors(X, 9, 20, "euclidean", "distance", 0)}


class Identity:
    """A hash function whose outputs are the features."""

    def decision(self, F):
        return F


@pytest.mark.parametrize("seed", range(20))
def test_precision_among_judged_partners_by_its_definition(seed):
    """All orders that ties allow, one after another."""
    rng = np.random.default_rng(seed)
    queries, base = oracle.codes(rng, 4, 2), oracle.codes(rng, 6, 2)
    queried, kept = (
        part.ravel() for part in np.meshgrid(np.arange(4), np.arange(6), indexing="ij")
    )
    chosen = rng.random(24) < 0.7
    queried, kept, similar = queried[chosen], kept[chosen], (rng.random(24) < 0.5)[chosen]
    similar[0] = True
    pairs = JudgedPairs(queried, kept, similar)
    result = PairPrecision(base.astype(float), queries.astype(float), pairs)(Identity())
    each = []
    for q in range(4):
        mine = queried == q
        d = (queries[q] != base[kept[mine]]).sum(axis=1)
        right = similar[mine]
        R = right.sum()
        if R:
            orders = [
                right[list(order)][:R].mean()
                for order in itertools.permutations(range(len(d)))
                if (np.diff(d[list(order)]) >= 0).all()
            ]
            each.append(np.mean(orders))
    assert result == pytest.approx(np.mean(each))


def test_which_pairs_judge():
    """Only those between a held-out point and another; a pair of several values by their mean."""
    A = affinity.from_pairs(
        [0, 1, 2, 3, 0, 0, 4], [1, 2, 3, 4, 3, 3, 1], [1, 1, -1, 1, -1, 0.2, 0.1], 5
    )
    pairs = judged_pairs(A, np.array([1, 3]), np.array([0, 2, 4]))
    actual = {
        (int(q), int(m)): bool(s)
        for q, m, s in zip(pairs.query, pairs.partner, pairs.similar, strict=True)
    }
    # Point 1 with 0, 2 and 4; point 3 with 2, 4 and, of -1 and 0.2, with 0.
    expected = {(0, 0): True, (0, 1): True, (0, 2): True}
    expected |= {(1, 0): False, (1, 1): False, (1, 2): True}
    assert actual == expected
    with pytest.raises(ValueError, match="no point held out for validation has a similar partner"):
        judged_pairs(
            affinity.from_pairs([0, 1], [1, 2], [-1, 1], 3), np.array([0]), np.arange(1, 3)
        )


WAYS = {
    "labels": (0.2, labels),
    "labels at 5": (Validation(0.2, k=5), labels),
    "labels given": (Validation((X, y), k=7), labels),
    "pairs": (0.2, pairs),
    "distances": (0.2, apart),
    "pairs of neighbours": (0.2, near),
    "neighbours": (Validation(0.2, k=20, neighbors=10), near),
    "neighbours given": (Validation(QUERIES, neighbors=10), near),
    "neighbours and labels": (Validation(0.2, neighbors=10), labels),
}


@pytest.mark.parametrize(
    ("solver", "way"),
    [("descent", way) for way in WAYS]
    + [("cut", way) for way in (WAYS if SOAK else ("labels", "pairs", "neighbours"))],
)
def test_the_model_never_validates_below_its_start(way, solver):
    validation, data = WAYS[way]
    hasher = MACHash(**SMALL, **FEW_PAIRS, z_step=solver, validation=validation).fit(X, **data())
    scores = [step.score for step in hasher.history_ if step.accepted]
    assert scores == sorted(scores)
    assert all(0 <= score <= 1 for score in scores)
    chosen = next(s for s in hasher.history_ if s.accepted and s.loss == hasher.loss_)
    assert chosen.score >= hasher.history_[0].score
    again = clone(hasher).fit(X, **data())
    np.testing.assert_array_equal(again.codes_, hasher.codes_)


def test_some_steps_are_skipped_by_pairs_alone():
    validation, data = WAYS["pairs"]
    hasher = MACHash(**SMALL, validation=validation).fit(X, **data())
    assert not all(step.accepted for step in hasher.history_)


def test_true_neighbours_by_hand():
    validation = Validation(QUERIES, k=15, neighbors=10)
    hasher = TwoStepHash(**SMALL, validation=validation).fit(X, **near())
    truth = nearest(X, QUERIES, 10)[0]
    expected = metrics.precision_at_k(
        hasher.encode(QUERIES), hasher.encode(X), k=15, neighbors=truth
    )
    assert hasher.history_[0].score == pytest.approx(expected)


def test_k_can_be_set():
    for k in (5, 100, 10_000):
        hasher = TwoStepHash(**SMALL, **FEW_PAIRS, validation=Validation((QUERIES, y[:40]), k)).fit(
            X, y
        )
        expected = hasher.score(QUERIES, y[:40], k=min(k, 300))
        assert hasher.history_[0].score == pytest.approx(expected)
    plain = TwoStepHash(**SMALL, **FEW_PAIRS, validation=(QUERIES, y[:40])).fit(X, y)
    assert plain.history_[0].score == pytest.approx(plain.score(QUERIES, y[:40], k=100))


def test_the_paper_s_methods_validate_on_pairs():
    hasher = paper.maccut(6, random_state=0, n_jobs=1).fit(X, **near())
    assert hasher.history_[-1].score >= 0


@pytest.mark.parametrize(
    ("validation", "data", "message"),
    [
        ((QUERIES, y[:40]), near, "compares labels and needs y"),
        (Validation((QUERIES, y[:40]), neighbors=3), labels, "give X alone"),
        (Validation(QUERIES), labels, r"for X alone, Validation\(X, neighbors"),
        (QUERIES, labels, r"for X alone, Validation\(X, neighbors"),
        (Validation(QUERIES[:, :3], neighbors=3), labels, "features"),
        (Validation(2.0), labels, "validation must be a fraction below 1"),
        (Validation("0.1"), labels, "validation must be a number above 0"),
    ],
)
def test_what_cannot_be_validated_on(validation, data, message):
    with pytest.raises(ValueError, match=message):
        MACHash(**SMALL, validation=validation).fit(X, **data())


def test_settings_are_checked_saved_and_told_apart(tmp_path):
    for wrong, message in (
        ({"k": 0}, "k must be a whole"),
        ({"neighbors": 0}, "neighbors must be"),
    ):
        with pytest.raises(ValueError, match=message):
            Validation(0.1, **wrong)
    assert repr(Validation(0.1)) == "Validation(points=0.1, k=100, neighbors=None)"
    assert len({in_words(Validation(0.1, k)) for k in (5, 6)}) == 2
    assert in_words(Validation(QUERIES)) == in_words(Validation(QUERIES.copy()))
    validation = Validation(QUERIES, 12, 7)
    hasher = TwoStepHash(**SMALL, validation=validation).fit(X, **near())
    hasher.save(tmp_path / "model")
    stored = auxhash.load(tmp_path / "model").validation
    assert stored == ByName(f"points of shape {QUERIES.shape}")  # and not the points themselves


@pytest.mark.parametrize("source", [labels, lambda: labels() | pairs()])
@pytest.mark.parametrize("kind", [MACHash, TwoStepHash, MACHash(warm_start=True)])
def test_codes_to_start_from_are_left_out_with_the_points_held_out(source, kind):
    by_class = oracle.codes(np.random.default_rng(0), 6, 8)
    hasher = (kind() if isinstance(kind, type) else kind).set_params(
        **SMALL, **FEW_PAIRS, validation=0.2, init=by_class[y]
    )
    for _ in range(2):
        hasher.fit(X, **source())
        kept = by_class[hasher.labels_]
        assert kept.shape == (240, 8)
        assert hasher.history_[0].free_loss == losses.total(kept, hasher.affinity_, "ksh")


@pytest.mark.parametrize("kind", [MACHash, TwoStepHash, EndToEndHash])
@pytest.mark.parametrize(("n", "validation"), [(240, 0.2), (240, None), (301, 0.2)])
def test_codes_of_another_number_of_points_are_refused(kind, n, validation, tmp_path):
    hasher = kind(
        **{**SMALL, "refine": "auto"}, **FEW_PAIRS, validation=validation, init=np.ones((n, 8))
    )
    message = rf"^init must be of shape \(300, 8\) \(all points of X, n_bits\), got \({n}, 8\)$"
    with pytest.raises(ValueError, match=message):
        hasher.fit(X, y, checkpoint=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_gradients_alone_go_on_whatever_codes_are_given():
    """Without a Z step there is nothing for them to start."""
    both = []
    for init in (None, np.ones((150, 8))):
        hasher = EndToEndHash(
            **{**SMALL, "refine": Refine(n_steps=20)}, **FEW_PAIRS, warm_start=True
        )
        hasher.fit(X[:150], y[:150]).set_params(init=init)
        both.append(hasher.fit(X[150:], y[150:]).decision_function(X))
    np.testing.assert_array_equal(*both)
