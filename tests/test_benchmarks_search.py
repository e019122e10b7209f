"""The benchmarks of search and metrics run, at a small size."""

from benchmarks import metrics, search


def test_search_bench(capsys):
    search.main(["--n", "20000", "--runs", "1", "--largest", "10000"])
    shown = capsys.readouterr().out
    for part in ("exact search", "by scale", "small radii", "approximate"):
        assert part in shown


def test_metrics_bench(capsys):
    metrics.main(["--queries", "20", "--base", "300", "--k", "100", "--runs", "1"])
    assert "faiss, k = 100" in capsys.readouterr().out
