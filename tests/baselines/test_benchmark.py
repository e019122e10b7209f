"""The benchmark of the compared methods, at a small size."""

import pytest

from auxhash import baselines
from benchmarks import baselines as benchmark


@pytest.mark.filterwarnings("ignore:.*points have fewer than n_")
def test_every_method_is_measured(capsys):
    benchmark.main(n=150, dim=12, n_bits=8)
    printed = capsys.readouterr().out
    assert all(name in printed for name in baselines.__all__)
    assert "All together" in printed
