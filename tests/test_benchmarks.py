"""Every benchmark runs, at a small size."""

import pytest

from benchmarks import __main__ as benchmarks


@pytest.mark.parametrize("name", benchmarks.NAMES)
def test_it_runs(name, capsys):
    benchmarks.main([name, "--small"])
    assert "ratio" in capsys.readouterr().out


def test_unknown_name():
    with pytest.raises(SystemExit, match="no benchmark 'nothing'"):
        benchmarks.main(["nothing"])
