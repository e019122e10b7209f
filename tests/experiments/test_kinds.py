"""Claims about hash functions, each on made numbers for which it holds, does not, and on none."""

from auxhash.experiments import kinds
from tests.experiments.made import history, outcome, record


def four(mac_linear, mac_kernel, kernel=0.6):
    return [
        record("cut", p=0.4),
        record("cut", p=kernel, kind="rbf"),
        record("MACcut", p=mac_linear),
        record("MACcut", p=mac_kernel, kind="rbf"),
    ]


def test_larger_gain_for_linear():
    test = kinds.larger_gain_for_linear("MACcut", "cut")
    assert outcome(test, *four(0.5, 0.65)) is True
    assert outcome(test, *four(0.45, 0.7)) is False
    assert outcome(test, record("MACcut"), record("cut")) is None


def test_gain_like_a_kernel():
    test = kinds.gain_like_a_kernel("MACcut", "cut")
    assert outcome(test, *four(0.5, 0.6)) is True  # 0.1 against 0.2
    assert outcome(test, *four(0.45, 0.6)) is False
    assert outcome(test, *four(0.39, 0.6, kernel=0.3)) is False  # no gain is no gain
    assert outcome(test, record("MACcut"), record("cut")) is None


def test_free_codes():
    far = record("MACcut", 1.0, history=history(1.2, 1.0, free=0.2))
    near = record("MACcut", 1.0, history=history(1.0, 1.0, free=0.95))  # though MAC gained nothing
    assert outcome(kinds.free_codes_far_below, far) is True
    assert outcome(kinds.free_codes_far_below, far, near) is False
    assert outcome(kinds.free_codes_far_below, record("cut")) is None
    linear, kernel = record("MACcut", 2.0), record("MACcut", 1.0, kind="rbf")
    assert outcome(kinds.kernel_nearer_than_linear, linear, kernel) is True
    assert outcome(kinds.kernel_nearer_than_linear, record("MACcut", 0.5), kernel) is False
    assert outcome(kinds.kernel_nearer_than_linear, linear) is None


def test_harder_for_linear():
    def start(kind, violations):
        return record("MACcut", kind=kind, history=history(2, 1, violations=violations))

    assert outcome(kinds.harder_for_linear, start("linear", 9), start("rbf", 5)) is True
    assert outcome(kinds.harder_for_linear, start("linear", 5), start("rbf", 9)) is False
    assert outcome(kinds.harder_for_linear, start("linear", 5)) is None


def test_flexible_hash_functions():
    nearer, worse = kinds.nearer_the_free_codes("many"), kinds.generalises_worse("many")
    kernel = record("cut", 2.0, kind="rbf")
    assert outcome(nearer, kernel, record("cut", 1.0, kind="many")) is True
    assert outcome(nearer, kernel, record("cut", 3.0, kind="many")) is False
    assert outcome(worse, kernel, record("cut", p=0.4, kind="many")) is True
    assert outcome(worse, kernel, record("cut", p=0.6, kind="many")) is False
    for test in (nearer, worse):
        assert outcome(test, kernel) is None


def test_similar_but_slower():
    test = kinds.similar_but_slower("LIBSVM", "rbf")
    ours = record("MACcut", kind="rbf", seconds=1.0)
    for p, loss, seconds, expected in (
        (0.51, 1.0, 9.0, True),
        (0.51, 1.0, 1.5, False),
        (0.7, 1.0, 9.0, False),
        (0.51, 0.81, 9.0, False),  # not similar: a lower loss
    ):
        other = record("MACcut", loss, p, kind="LIBSVM", seconds=seconds)
        assert outcome(test, ours, other) is expected
    assert outcome(test, ours) is None
