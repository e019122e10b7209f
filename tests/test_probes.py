"""Probes of wrong answers and crashes: a few hundred cases here, many thousands under make soak."""

import pytest

from tests.probes import harness


@pytest.mark.parametrize(
    ("probe", "brief", "soak"),
    [
        ("tests.probes.operations:index_operations", 25, 5_000),
        ("tests.probes.operations:metric_cases", 25, 5_000),
        ("tests.probes.files:damaged", 40, 36_000),
        ("tests.probes.files:forged_index", 40, 5_000),
        ("tests.probes.files:forged_model", 20, 10_000),
    ],
)
def test_probe(probe, brief, soak):
    harness.run(probe, brief, soak)


@pytest.mark.parametrize("name", ["crash", "wrong", "hang"])
def test_the_harness_sees_what_goes_wrong(name, monkeypatch):
    monkeypatch.setattr(harness, "PATIENCE", 4)
    with pytest.raises(AssertionError, match=r"case 2\b"):
        harness.run(f"tests.probes.faulty:{name}", 4, 4)
