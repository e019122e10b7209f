"""Claims about iterations, each on made numbers for which it holds, does not, and on none."""

import pytest

from auxhash.experiments import iterates
from tests.experiments.made import history, outcome, record


def test_iterations():
    test = iterates.iterations(2, 3)
    assert outcome(test, record("MACcut", history=history(3, 2, 1))) is True
    assert outcome(test, record("MACcut", history=history(3, 1))) is False
    assert outcome(test, record("MACcut", history=history(3, 2, 1, violations=4))) is False
    assert outcome(test, record("cut", history=history(3))) is None


def test_progress():
    early = record("MACcut", history=history(9, 5, 4, 3))
    late = record("MACcut", history=history(9, 8.5, 8, 3))
    assert outcome(iterates.progress_at_the_beginning, early) is True
    assert outcome(iterates.progress_at_the_beginning, early, late) is False
    assert outcome(iterates.progress_at_the_beginning, record("cut")) is None


def test_times():
    quick = record("MACcut", history=history(3, 2, 1, seconds=[4, 2, 2]))
    slow = record("MACcut", history=history(3, 2, 1, seconds=[4, 5, 5]))
    endless = record("MACcut", history=history(3, 2, seconds=[1, 30]))
    assert outcome(iterates.later_are_faster, quick) is True
    assert outcome(iterates.later_are_faster, quick, slow) is False
    assert outcome(iterates.few_two_steps, quick, slow) is True
    assert outcome(iterates.few_two_steps, quick, endless) is False
    for test in (iterates.later_are_faster, iterates.few_two_steps):
        assert outcome(test, record("cut")) is None


def test_two_methods_whose_iterations_take_equally_long():
    test = iterates.equally_long("MACcut", "MACquad")
    cut = record("MACcut", history=history(2, 1, seconds=[100, 60]))
    for seconds, expected in ((100, True), (181, False), (19, False)):
        quad = record("MACquad", history=history(2, 1, seconds=[1, seconds]))
        assert outcome(test, cut, quad) is expected
    assert outcome(test, cut) is None
    assert outcome(test, cut, record("MACquad", history=history(2))) is None


def test_an_ignored_step_leaves_the_loss_as_it_was():
    steps = history(5, 4, 9, 3, accepted=[True, True, False, True])
    assert iterates.losses(record("MACcut", history=steps)) == [5, 4, 4, 3]


def test_the_last_iterate():
    test = iterates.last_below_first("MACcut", "cut")
    assert outcome(test, record("MACcut", history=history(3, 1, 2))) is True
    assert (
        outcome(test, record("MACcut", history=history(3, 1, 4))) is False
    )  # the lowest was below
    ignored = history(3, 2, 4, accepted=[True, True, False])
    assert outcome(test, record("MACcut", history=ignored)) is True
    assert outcome(test, record("MACquad", history=history(3, 1))) is None


def scores(*values, accepted, violations=1):
    columns = {"score": values, "accepted": accepted}
    return record("MACcut", history=history(*values, violations=violations, **columns))


def test_validation():
    test = iterates.never_below_the_start
    assert outcome(test, scores(0.5, 0.4, 0.6, accepted=[True, False, True])) is True
    assert outcome(test, scores(0.5, 0.4, accepted=[True, True])) is False
    assert outcome(test, scores(float("nan"), float("nan"), accepted=[True, True])) is None
    assert outcome(test, record("MACcut", history=history(2, 1))) is None


def test_steps_that_change_h():
    """Z can differ from h(X) after a step that left h as it was."""
    steps = history(
        5, 4, 4, 6, 4, 3,
        violations=7, score=[0.5, 0.6, 0.6, 0.4, 0.6, 0.6],
        accepted=[True, True, True, False, True, True],
    )  # fmt: skip
    assert iterates.changes(record("MACcut", history=steps)) == [steps[1], steps[3], steps[5]]
    unjudged = history(5, 5, 4, violations=7, score=[float("nan")] * 3)
    assert iterates.changes(record("MACcut", history=unjudged)) == [unjudged[2]]
    by_score = history(
        5, 5, score=[0.5, 0.6], accepted=[True, True]
    )  # another h, by chance as good
    assert iterates.changes(record("MACcut", history=by_score)) == [by_score[1]]


def test_where_h_does_not_change_nothing_is_said_about_its_steps():
    frozen = scores(0.5, 0.5, 0.5, accepted=[True] * 3, violations=9)
    assert outcome(iterates.next_mu_works, frozen) is None
    assert outcome(iterates.skips_the_rest, frozen) is None
    # The last that changed h was ignored; those after it, with violations, are taken by default.
    refused = scores(0.5, 0.6, 0.4, 0.6, 0.6, accepted=[True, True, False, True, True])
    assert outcome(iterates.skips_the_rest, refused) is None
    assert outcome(iterates.next_mu_works, refused) is None
    assert "for 50% of the iterations" in iterates.skips_the_rest([refused])[1]
    assert "It cannot be told in 1 run: near the end" in iterates.skips_the_rest([refused])[1]


def test_the_next_mu():
    test = iterates.next_mu_works
    assert outcome(test, scores(0.5, 0.4, 0.6, accepted=[True, False, True])) is True
    assert outcome(test, scores(0.5, 0.4, 0.3, accepted=[True, False, False])) is False
    assert outcome(test, scores(0.5, 0.6, accepted=[True, True])) is None  # nothing was ignored
    at_the_end = scores(0.5, 0.4, 0.5, accepted=[True, False, True])  # taken: nothing changed
    assert outcome(test, at_the_end) is None


def test_whether_the_last_steps_are_skipped():
    test = iterates.skips_the_rest
    to_the_end = scores(0.5, 0.6, 0.5, 0.4, 0.6, accepted=[True, True, False, False, True])
    in_between = scores(0.5, 0.4, 0.3, 0.6, 0.6, accepted=[True, False, False, True, True])
    once = scores(0.5, 0.4, 0.6, 0.3, 0.6, accepted=[True, False, True, False, True])
    assert outcome(test, to_the_end) is True
    assert outcome(test, in_between) is False
    assert outcome(test, once) is False  # a single one is not the rest
    unjudged = scores(0.5, 0.4, 0.5, 0.4, 0.5, accepted=[True, False, True, False, True])
    assert outcome(test, unjudged) is None  # between the two nothing was judged
    moving = scores(0.5, 0.6, 0.5, 0.4, accepted=[True, True, False, False])
    assert outcome(test, moving) is True  # to the last
    holds, numbers = test([to_the_end, unjudged])
    assert holds is True
    assert "in 1 of 1 runs (needed: two thirds). It cannot be told in 1 run:" in numbers
    assert outcome(test, record("cut")) is None


def test_the_average_cost_of_an_iteration():
    """The one that is slower is a short run: all in all, iterations are cheaper."""
    long = record("MACcut", history=history(2, 1, seconds=[10.0, 5.0]))
    short = record("MACcut", history=history(2, 1, seconds=[1.0, 2.0]))
    assert outcome(iterates.cheaper_on_average, long, short) is True
    assert outcome(iterates.later_are_faster, long, short) is False
    assert outcome(iterates.cheaper_on_average, short) is False
    assert outcome(iterates.cheaper_on_average, record("cut")) is None


def test_updates_that_would_raise():
    late = record("MACquad", history=history(3, 2, 1, skipped=[0, 0, 2]))
    early = record("MACquad", history=history(3, 2, 1, skipped=[0, 2, 0]))
    never = record("MACquad", history=history(3, 2, 1, skipped=[0, 0, 0]))
    test = iterates.raises_near_the_end("MACquad")
    assert outcome(test, late) is True
    assert outcome(test, early) is False
    assert outcome(test, never) is False
    assert outcome(test, record("MACquad", history=history(3, 2, 1))) is None  # not measured
    assert outcome(iterates.never_raises("MACquad"), never) is True
    assert outcome(iterates.never_raises("MACquad"), never, late) is False
    assert outcome(iterates.never_raises("MACcut"), never) is None


def test_the_z_step_dominates():
    def run(z, h):
        return record("MACcut", history=history(2, 1, z_seconds=[z, z], h_seconds=[h, h]))

    assert outcome(iterates.z_step_dominates, run(3, 1)) is True
    assert outcome(iterates.z_step_dominates, run(3, 1), run(1, 3)) is False
    assert outcome(iterates.z_step_dominates, record("MACcut", history=history(2, 1))) is None


def test_iterations_like_a_two_step():
    test = iterates.iterations_like_a_two_step("MACcut")
    assert outcome(test, record("MACcut", history=history(3, 2, seconds=[4, 2]))) is True
    assert outcome(test, record("MACcut", history=history(3, 2, seconds=[4, 1]))) is False
    assert outcome(test, record("MACcut", history=history(3, 2, seconds=[4, 13]))) is False
    assert outcome(test, record("MACcut", history=history(3))) is None
    assert outcome(test, record("MACquad", history=history(3, 2, seconds=[4, 2]))) is None


@pytest.mark.parametrize(("search", "expected"), [(3.0, True), (30.0, False)])
def test_the_search_for_mu(search, expected):
    steps = history(
        4, 3, 2, 1,
        seconds=[2, 1 + search, 1, 1], z_seconds=[0.5] * 4, h_seconds=[0.4] * 4,
    )  # fmt: skip
    test = iterates.mu_in_a_few_iterations("MACcut, mu found")
    assert outcome(test, record("MACcut, mu found", history=steps)) is expected
    assert outcome(test, record("MACcut", history=steps)) is None
