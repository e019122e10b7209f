"""Promises of refinement: never a higher L(h), the same bytes for a seed, any loss."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from auxhash import MACHash, TwoStepHash
from auxhash.learn.smooth import N_REPORTS, Refine
from auxhash.mac import affinity, losses
from auxhash.mac.hashfunctions import NetworkHash, SVMHash, network
from tests.conftest import BRIEF, SOAK

QUICK = Refine(n_steps=30, batch=100)
SMALL = {"n_bits": 12, "n_similar": 10, "n_dissimilar": 30, "max_iter": 6, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:], y[300:]


def own(d, y, b):
    return np.abs((b - 2 * d) / b - y)


@pytest.mark.parametrize(
    ("hash_function", "loss"),
    [
        (hash_function, loss)
        for hash_function in ("linear", "rbf", "network")
        for loss in (*losses.LOSSES, own)
        if SOAK or hash_function == "linear" or loss in ("ksh", own)
    ],
)
def test_loss_never_rises(digits, loss, hash_function):
    X, y, _, _ = digits
    settings = {**SMALL, "loss": loss, "hash_function": hash_function}
    plain = MACHash(**settings, refine=None).fit(X, y)
    refined = MACHash(**settings, refine=QUICK).fit(X, y)
    assert refined.loss_ <= plain.loss_
    assert refined.loss_ == losses.total(refined.transform(X), refined.affinity_, loss)
    # MAC's part is untouched, and the rest says what it is.
    n = plain.n_iter_
    assert [step.loss for step in refined.history_[:n]] == [step.loss for step in plain.history_]
    later = refined.history_[n:]
    assert [step.iteration for step in later] == list(range(n, n + N_REPORTS))
    assert all(step.mu == np.inf and step.violations == 0 for step in later)
    assert refined.loss_ == min(step.loss for step in refined.history_)


LOSSES = [["ksh"], ["esplh"]] if SOAK else [["ksh", "esplh"]]  # each alone, or both together


@pytest.mark.parametrize("names", LOSSES, ids="-".join)
def test_it_lowers_the_loss_and_retrieves_better(names):
    # Of fewer points MAC's classifiers learn nearly every code, and there is little to gain.
    X, y = load_digits(return_X_y=True)
    X, queries, y, labels = X[:700], X[700:], y[:700], y[700:]
    gains, ratios = [], []
    for loss, n_bits, seed in itertools.product(names, (16, 32) if SOAK else (16,), range(2)):
        settings = {"n_bits": n_bits, "loss": loss, "n_similar": 15, "n_dissimilar": 40}
        settings["random_state"] = seed
        cut = MACHash(**settings, z_step="cut", mu=0.05, refine=None).fit(X, y)
        refined = MACHash(**settings, refine=Refine(n_steps=200)).fit(X, y)
        ratios.append(refined.loss_ / cut.loss_)
        gains.append(refined.score(queries, labels, k=30) - cut.score(queries, labels, k=30))
    for gain in (np.array(gains), 1 - np.array(ratios)):
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_the_scale_of_a_loss_is_of_no_consequence(digits):
    X, y, _, _ = digits
    ksh, bre = (MACHash(**SMALL, loss=loss, refine=QUICK).fit(X, y) for loss in ("ksh", "bre"))
    assert bre.loss_ == pytest.approx(ksh.loss_ / 4)  # as the losses are: decay follows
    np.testing.assert_array_equal(bre.codes_, ksh.codes_)


def test_pairs_alone_will_do(digits):
    X, y, _, _ = digits
    drawn = affinity.from_labels(y, 15, 40, 0)
    own = affinity.from_pairs(drawn.i, drawn.j, drawn.y, len(X), weight=drawn.weight)
    settings = {**SMALL, "n_bits": 16}
    plain = MACHash(**settings, refine=None).fit(X, affinity=own)
    refined = MACHash(**settings, refine=Refine(n_steps=300)).fit(X, affinity=own)
    assert refined.loss_ < plain.loss_


@pytest.mark.parametrize("pairs", ["given", "fresh"])
@pytest.mark.parametrize("hash_function", ["linear", "network"])
def test_same_seed_same_codes_on_any_number_of_threads(digits, pairs, hash_function):
    X, y, _, _ = digits
    refine = Refine(n_steps=40, batch=300, pairs=pairs)
    settings = {**SMALL, "hash_function": hash_function, "refine": refine, "max_iter": 2}
    one, two = (MACHash(**settings, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    other = MACHash(**{**settings, "random_state": 1}).fit(X, y)
    assert (other.codes_ != one.codes_).any()


def test_two_steps_stay_two_steps(digits):
    X, y, _, _ = digits
    plain, asked = (TwoStepHash(**SMALL, refine=r).fit(X, y) for r in (None, QUICK))
    assert asked.n_iter_ == 1
    np.testing.assert_array_equal(plain.codes_, asked.codes_)


def test_validation_keeps_what_it_did_not_accept_out(digits):
    X, y, _, _ = digits
    hasher = MACHash(**SMALL, validation=0.3, refine=QUICK).fit(X, y)
    accepted = [step for step in hasher.history_ if step.accepted]
    assert hasher.loss_ == min(step.loss for step in accepted)
    assert all(np.isfinite(step.score) for step in hasher.history_)
    best = -np.inf
    for step in hasher.history_[hasher.n_iter_ - N_REPORTS :]:
        if step.accepted:
            assert step.score >= best
            best = step.score


def test_validation_chooses_what_a_network_leaves_open(digits, monkeypatch):
    X, y = digits[0][:150], digits[1][:150]
    scored = []
    score = Refine._score

    def noted(self, h, *others):
        scored.append((self.n_steps, h.dropout, h.noise, score(self, h, *others)))
        return scored[-1][-1]

    monkeypatch.setattr(Refine, "_score", noted)
    settings = {**SMALL, "max_iter": 2, "refine": Refine(n_steps=120, batch=100), "validation": 0.3}
    hasher = MACHash(**settings, hash_function="network").fit(X, y)
    first = [each for each in scored if each[0] == 20]
    second = [each for each in scored if each[0] == 30]
    assert len(first) == len({each[1:3] for each in first}) == 4
    better = sorted(first, key=lambda each: -each[-1])[:2]
    assert [each[1:3] for each in second] == [each[1:3] for each in better]
    best = max(second, key=lambda each: each[-1])
    h = hasher.hash_function_
    refined = [step for step in hasher.history_[-N_REPORTS:] if step.accepted]
    if refined and hasher.loss_ == min(step.loss for step in refined):
        assert (h.dropout, h.noise) == best[1:3]
    scored.clear()
    again = MACHash(**settings, hash_function="network").fit(X, y)
    np.testing.assert_array_equal(again.codes_, hasher.codes_)
    scored.clear()
    MACHash(**settings, hash_function=network(dropout=0.3)).fit(X, y)
    MACHash(**{**settings, "validation": None}, hash_function="network").fit(X, y)
    assert scored == []


@pytest.mark.parametrize(("n", "steps"), [(700, 1000), (5_000, 1500), (10**4, 3000), (10**6, 3000)])
def test_a_network_takes_more_steps(n, steps):
    assert Refine.for_network(n) == Refine(n_steps=steps, keep="refined")


def test_classifiers_without_a_gradient(digits):
    X, y, _, _ = digits
    settings = {**SMALL, "hash_function": LogisticRegression(), "max_iter": 1}
    hasher = MACHash(**settings).fit(X[:100], y[:100])  # "auto" leaves it as MAC made it
    assert all(step.mu < np.inf for step in hasher.history_)
    with pytest.raises(TypeError, match="no gradient"):
        MACHash(**settings, refine=QUICK).fit(X[:100], y[:100])


def test_few_points_and_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 1])
    for n_bits in (1, 2, 70):
        hasher = MACHash(n_bits, n_similar=1, n_dissimilar=1, refine=QUICK, random_state=0).fit(
            X, y
        )
        assert hasher.transform(X).shape == (6, n_bits)
        assert np.isfinite(hasher.decision_function(X)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_steps": 0}, "n_steps must be a whole number"),
        ({"batch": 1.5}, "batch must be a whole number"),
        ({"pairs": "frsh"}, "pairs must be"),
        ({"steepness": (3, 2)}, "steepness must be"),
        ({"rate": 0}, "rate must be a number above 0"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        Refine(**wrong)


def test_wrong_refine(digits):
    with pytest.raises(ValueError, match="refine must be"):
        MACHash(refine="always").fit(digits[0], digits[1])


def test_by_default_what_was_refined_on_fresh_pairs_is_kept(digits, briefly_refined):
    """Few points: MAC overfits their pairs, and its L(h) is the lower one."""
    X, y = digits[0][:150], digits[1][:150]
    settings = {"n_bits": 16, "n_similar": 10, "n_dissimilar": 30, "random_state": 0, "tol": None}
    kept = MACHash(**settings).fit(X, y)
    own = Refine() if SOAK else Refine(n_steps=BRIEF)
    lower = MACHash(**settings, refine=own).fit(X, y)
    assert lower.loss_ == min(step.loss for step in lower.history_)
    assert kept.loss_ == kept.history_[-1].loss > lower.loss_
    assert [s.loss for s in kept.history_] == [s.loss for s in lower.history_]
    np.testing.assert_array_equal(
        kept.codes_, MACHash(**settings, refine=replace(own, keep="refined")).fit(X, y).codes_
    )


def test_for_rank(digits):
    X, y, queries, labels = digits
    settings = {"n_bits": 16, "n_similar": 10, "n_dissimilar": 30, "random_state": 0}
    ranked = Refine(n_steps=200 if SOAK else 80, objective="rank", keep="refined")
    of_classes = MACHash(**settings, refine=ranked).fit(X, y)
    pairs = affinity.from_neighbors(X, 10, 30, random_state=0)
    of_pairs = MACHash(**settings, refine=ranked).fit(X, affinity=pairs)
    for hasher in (of_classes, of_pairs):
        assert hasher.loss_ == hasher.history_[-1].loss
    plain = MACHash(**settings, refine=None).fit(X, y)
    assert of_classes.score(queries, labels, 20) > plain.score(queries, labels, 20)
    mixed = Refine(n_steps=20, objective="rank", keep="refined", neighbors=0.5)
    codes = [MACHash(**settings, refine=mixed, n_jobs=n).fit(X, y).codes_ for n in (1, 2)]
    np.testing.assert_array_equal(*codes)
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match="neighbors"):
            Refine(objective="rank", neighbors=wrong)
    with pytest.raises(ValueError, match='for objective="rank"'):
        Refine(neighbors=0.5)
    never = affinity.from_pairs([0, 1], [2, 3], [-1, -1], n_points=4)
    with pytest.raises(ValueError, match="needs similar pairs"):
        MACHash(4, refine=ranked).fit(X[:4], affinity=never)


@pytest.mark.parametrize("hash_function", ["linear", "network"])
def test_weights_decay_more_for_the_rank(digits, hash_function, monkeypatch):
    X, y, _, _ = digits
    kind = {"linear": SVMHash, "network": NetworkHash}[hash_function]
    smooth, seen = kind.smooth, {}
    for objective in ("loss", "rank"):

        def kept(self, *values, objective=objective):
            seen[objective] = self.decay
            return smooth(self, *values)

        with monkeypatch.context() as patch:
            patch.setattr(kind, "smooth", kept)
            brief = Refine(n_steps=10, objective=objective)
            model = MACHash(**SMALL, hash_function=hash_function, refine=brief).fit(X, y)
    assert seen["rank"] == pytest.approx(25 * seen["loss"])
    assert model.hash_function_.decay == seen["loss"] > 0  # what is kept is the function's own


@pytest.mark.parametrize(
    ("n", "steps"),
    [(5, 1000), (10_000, 1000), (40_000, 2000), (1_000_000, 10_000), (10**8, 10_000)],
)
def test_more_points_take_more_steps(n, steps):
    assert Refine.for_many(n) == Refine(n_steps=steps, keep="refined")
