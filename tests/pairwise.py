"""Cases that hold every pair of values of several options, and what is refused among them."""

import re
from itertools import combinations, product
from typing import NamedTuple

import pytest


class Rule(NamedTuple):
    """A refusal: of all these options with one of these values each, and what the error says."""

    when: dict
    says: str
    error: type | tuple = ValueError

    def holds(self, case):
        return all(name in case and case[name] in values for name, values in self.when.items())


def broken(case, rules):
    return [rule for rule in rules if rule.holds(case)]


def pairs_of(case):
    return set(combinations(sorted(case.items()), 2))


def covering(options, rules=()):
    """Return cases which no rule refuses, and in them every pair of values for which there is one.

    Greedy: a pair that no case holds yet is completed by the values that add most other such pairs.
    """
    missing = set()
    for a, b in combinations(sorted(options), 2):
        missing |= {((a, x), (b, y)) for x in options[a] for y in options[b]}
    cases = []
    while missing:
        pair = min(missing)
        case = _completed(dict(pair), options, rules, missing)
        missing -= {pair} if case is None else pairs_of(case)
        cases += [] if case is None else [case]
    return cases


def _completed(case, options, rules, missing):
    """The case with all options, or None if every way to complete it is refused."""
    if broken(case, rules):
        return None
    left = [name for name in options if name not in case]
    if not left:
        return case
    more = [case | {left[0]: value} for value in options[left[0]]]
    more.sort(key=lambda each: -len(pairs_of(each) & missing))
    return next(filter(None, (_completed(each, options, rules, missing) for each in more)), None)


def refused(options, rules):
    """Yield cases that break each rule in all of its ways, all other options at their first."""
    usual = {name: values[0] for name, values in options.items()}
    for rule in rules:
        for values in product(*rule.when.values()):
            yield usual | dict(zip(rule.when, values, strict=True))


def check_message(error, case, rules):
    """One of the rules that the case breaks says so."""
    broken_rules = broken(case, rules)
    assert broken_rules, f"refused, but by no rule: {error!r}"
    matching = [rule for rule in broken_rules if re.search(rule.says, str(error))]
    assert matching, f"{error!r} is none of {[rule.says for rule in broken_rules]}"
    assert any(isinstance(error, rule.error) for rule in matching), repr(error)
    assert "\n" not in str(error)


def named(cases, options):
    """The cases as parameters of a test, each once, named by what is not the usual."""
    made = {}
    for case in cases:
        unusual = [value for name, value in case.items() if value != options[name][0]]
        made["-".join(unusual) or "usual"] = case
    return [pytest.param(case, id=name) for name, case in made.items()]
