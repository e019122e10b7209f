"""The figure of maps: its numbers, and that its claims can fail."""

import pytest

from auxhash.experiments.figures.maps import MapRun, verdicts

CASE = ("tsne", "linear")


@pytest.fixture(scope="module")
def facts():
    return MapRun("digits", (("n_train", 100), ("n_query", 50)), *CASE).run()[0]


def test_learnt_together_it_is_better_than_fitted_afterwards(facts):
    E = facts["E"]
    assert E["joint"] < 0.97 * min(E["direct"], E["repeated"])
    assert E["free"] < E["joint"]
    assert E["direct"] == facts["history"][0]["loss"]
    assert [verdict.holds for verdict in verdicts({CASE: facts})] == [True, True, True]


def test_the_claims_can_fail(facts):
    cut = facts["history"][:-1]
    worse = facts | {"E": facts["E"] | {"joint": max(facts["E"].values())}, "history": cut}
    assert [verdict.holds for verdict in verdicts({CASE: worse})] == [False, False, False]


def test_without_a_path_there_is_no_claim(facts):
    once = facts | {"history": facts["history"][:1]}
    assert [verdict.holds for verdict in verdicts({CASE: once})] == [None, None, None]
