"""The benchmarks of search and metrics run, at a small size."""

from benchmarks import metrics, search


def test_search_bench(capsys):
    search.main(small=True)
    shown = capsys.readouterr().out
    for part in ("exact search", "by scale", "small radii", "approximate"):
        assert part in shown


def test_metrics_bench(capsys):
    metrics.main(small=True)
    assert "faiss, k = 100" in capsys.readouterr().out
