"""The covering array itself."""

from itertools import product

import pytest

from tests.pairwise import Rule, broken, check_message, covering, pairs_of, refused

OPTIONS = {"a": (1, 2, 3), "b": (1, 2, 3), "c": (1, 2), "d": (1, 2)}
RULES = [
    Rule({"a": (1,), "b": (2, 3)}, "no a"),
    Rule({"b": (1,), "c": (2,), "d": (1, 2)}, "no c"),  # so never b = 1 with c = 2
]


def all_cases():
    return [dict(zip(OPTIONS, values, strict=True)) for values in product(*OPTIONS.values())]


@pytest.mark.parametrize("rules", [[], RULES])
def test_every_pair_that_can_be_is_there(rules):
    cases = covering(OPTIONS, rules)
    assert not any(broken(case, rules) for case in cases)
    possible = [case for case in all_cases() if not broken(case, rules)]
    assert set().union(*map(pairs_of, cases)) == set().union(*map(pairs_of, possible))
    assert len(cases) < len(possible)
    assert all(list(case) and set(case) == set(OPTIONS) for case in cases)


def test_every_way_to_break_a_rule_is_there():
    cases = list(refused(OPTIONS, RULES))
    assert len(cases) == 2 + 2
    assert all(broken(case, RULES) for case in cases)


def test_errors_are_those_of_the_rules():
    wrong, right = {"a": 1, "b": 2, "c": 1, "d": 1}, {"a": 2, "b": 2, "c": 1, "d": 1}
    check_message(ValueError("there is no a"), wrong, RULES)
    for error, case in (
        (ValueError("there is no c"), wrong),
        (KeyError("no a"), wrong),
        (ValueError("no a"), right),
    ):
        with pytest.raises(AssertionError):
            check_message(error, case, RULES)
