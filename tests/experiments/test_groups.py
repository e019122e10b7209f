from dataclasses import replace

import numpy as np
import pytest

import auxhash
from auxhash.experiments import datasets, runs, scales
from auxhash.experiments.cells import Cells
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.groups import LIBSVM, MANY_CENTRES, SEARCHED_MU, Group, drawn
from auxhash.experiments.scales import ORDERS, PAPER, SCALES, TINY, Data, resolved
from auxhash.learn import paper
from auxhash.learn.hasher import Hasher
from auxhash.mac import losses
from auxhash.mac.hashfunctions import Scaled
from auxhash.search import metrics

DATA = Data("digits", 60, 200, 20)


def group(methods=("cut", "MACcut", "ITQ"), **more):
    settings = {"mu": 0.1, "seeds": 2, "seeds_quad": 1, **more}
    return Group("KSH", DATA, "ksh", (5, 25), (4,), methods, **settings)


def test_the_sizes_of_data_are_those_of_its_parts():
    for data in (DATA, replace(DATA, n_base=None)):
        loaded = data.load()
        assert data.sizes == {"base": len(loaded.base), "test set": len(loaded.query)}


def keep(some, folder):
    cells = Cells(folder)
    for training in some.trainings():
        cells.write(training.configuration(), *training.run())
    return cells


def test_two_step_methods_are_not_trained_but_are_what_they_are(tmp_path):
    some = group()
    assert [t.method for t in some.trainings()] == ["MACcut", "MACcut", "ITQ", "ITQ"]
    records = some.records(keep(some, tmp_path))
    assert [(r.method, r.seed) for r in records][:2] == [("cut", 0), ("cut", 1)]
    data = DATA.load()
    for seed in (0, 1):
        pairs = drawn(DATA, (5, 25), seed)
        hasher = paper.cut(n_bits=4, order="random", random_state=seed, n_jobs=1)
        hasher.fit(data.train.X, data.train.y, affinity=pairs)
        (record,) = [r for r in records if (r.method, r.seed) == ("cut", seed)]
        assert record.history[0]["loss"] == pytest.approx(record.loss, rel=1e-12)
        codes = hasher.encode(data.query.X), hasher.encode(data.base.X)
        precision = metrics.precision_at_k(*codes, data.query.y, data.base.y, [10, 20])
        np.testing.assert_allclose([record.precision[10], record.precision[20]], precision)
    macs = [r for r in records if r.method == "MACcut"]
    assert all(r.history for r in macs)


def test_the_model_is_kept(tmp_path):
    some = group(("MACcut",), seeds=1)
    (training,) = some.trainings()
    _, arrays = keep(some, tmp_path).read(training.configuration())
    (tmp_path / "model").write_bytes(arrays["model"].tobytes())
    np.testing.assert_array_equal(
        auxhash.load(tmp_path / "model").encode(DATA.load().query.X), arrays["query"]
    )


def test_what_is_missing_is_left_out(tmp_path):
    some = group()
    cells = keep(some, tmp_path)
    cells.path(some.trainings()[1].configuration()).unlink()
    result = {(r.method, r.seed) for r in some.records(cells)}
    assert result == {("cut", 0), ("MACcut", 0), ("ITQ", 0), ("ITQ", 1)}
    assert some.codes("MACcut", 4, cells) is not None
    assert some.codes("KSH", 4, cells) is None


def test_quad_has_fewer_seeds():
    some = group(("quad", "MACquad", "MACcut"), seeds=3)
    assert sorted((t.method, t.seed) for t in some.trainings()) == [
        ("MACcut", 0), ("MACcut", 1), ("MACcut", 2), ("MACquad", 0),
    ]  # fmt: skip
    assert len(group(("MACquad",), seeds=1, seeds_quad=3).trainings()) == 1


def configurations(name, scale):
    return {str(job.configuration()) for job in FIGURES[name].jobs(scale)}


def test_figures_share_cells():
    nested = configurations("sup-nestederr", TINY)
    # Their own: a kernel with many centres; mu_1 by search, and LIBSVM.
    assert len(configurations("sup-nestederr-freecodes", TINY) - nested) == 1
    assert len(configurations("run-time", TINY) - nested) == 2
    assert configurations("unsup-free", TINY) <= configurations("unsup-nestederr", TINY)
    assert configurations("unsup-entropy", TINY) == configurations("unsup-comparison", TINY)
    shared = configurations("sup-comparison", TINY) & nested
    assert len(shared) == 2 + 1 + 2  # MACcut, MACquad and KSH with 6 bits, at their seeds


def test_the_h_step_and_the_iterate_concern_mac_alone():
    """Cells from before there was a choice are those of "monotone" and "lowest"."""
    papers = configurations("sup-nestederr", TINY)
    for other in ({"h_step": "monotone"}, {"iterate": "lowest"}):
        changed = configurations("sup-nestederr", replace(TINY, **other)) - papers
        assert len(changed) == len([c for c in papers if "MACHash" in c])
    before = replace(TINY, h_step="monotone", iterate="lowest")
    assert not any(
        name in one
        for figure in ("sup-nestederr", "free-codes")
        for one in configurations(figure, before)
        for name in ("h_step", "iterate")
    )
    assert all("plain" in one for one in configurations("free-codes", TINY))


def test_the_order_of_blocks_concerns_maccut_alone():
    fixed = configurations("sup-comparison", replace(TINY, order="fixed"))
    random = configurations("sup-comparison", TINY)
    assert len(fixed) == len(random)
    assert len(fixed - random) == 2 * 2  # MACcut with 6 bits: 2 data sets, 2 seeds


@pytest.mark.parametrize("order", ORDERS)
def test_maccut_and_macquad_are_the_papers(order):
    some = group(("MACcut", "MACquad"), seeds=1, order=order)
    maccut, macquad = (training.hasher() for training in some.trainings())
    settings = {"n_similar": 5, "n_dissimilar": 25, "random_state": 0}
    wanted = paper.maccut(4, order=order), paper.macquad(4)
    for hasher, other in zip((maccut, macquad), wanted, strict=True):
        other.set_params(**settings)
        assert hasher.mu == pytest.approx(0.1 * other.mu)
        assert str(hasher.set_params(mu=other.mu).get_params()) == str(other.get_params())


def test_kinds_of_hash_functions():
    (many, libsvm) = group(
        ("MACcut",), seeds=1, hash_functions=(MANY_CENTRES, LIBSVM)
    ).trainings()  # fmt: skip
    assert many.hasher().hash_function.map.n_centers == 2_000
    classifier = libsvm.hasher().hash_function
    first = Scaled().fit(DATA.load().train.X, None)(DATA.load().train.X)
    apart = np.linalg.norm(first[:, None] - first[None], axis=2).sum() / (60 * 59)
    assert classifier.gamma == pytest.approx(1 / (2 * apart**2))
    (training,) = group((SEARCHED_MU,), seeds=1).trainings()
    assert training.hasher().mu == "auto"


def test_losses_are_told_over_all_training_pairs(tmp_path):
    """Losses of the history leave out the points held out for validation."""
    some = group(("cut", "MACcut"), seeds=1)
    cells = keep(some, tmp_path)
    cut, maccut = some.records(cells)
    assert cut.loss == pytest.approx(maccut.history[0]["loss"], rel=1e-12)
    (facts,) = some.facts(cells)
    assert facts["history"][0]["loss"] < cut.loss


def test_the_paper_s_sizes():
    assert PAPER.pairs == (100, 500)
    assert PAPER.images == Data("cifar10-gist", 10_000, n_query=2_000)
    (first, second) = FIGURES["sup-nestederr"].groups(PAPER)
    assert first.bits == second.bits == (16, 32, 48)
    assert second.methods == ("cut", "MACcut")
    hasher = first.trainings()[0].hasher()
    assert (hasher.mu, hasher.alpha, hasher.n_similar, hasher.max_sweeps) == (0.3, 1.4, 100, 2)
    macquad = next(t for t in first.trainings() if t.method == "MACquad")
    assert macquad.hasher().mu == 0.01
    for each in FIGURES["unsup-comparison"].groups(PAPER):
        assert each.data.n_train == 5_000
        assert each.data.n_true == 20_000
        assert each.data.n_query == 10_000
    (far,) = FIGURES["unsup-nestederr1"].groups(PAPER)
    assert (far.pairs, far.data.n_true) == ((50, 1_000), 10_000)


def test_the_stand_in_for_sift(tmp_path, monkeypatch):
    monkeypatch.setenv("AUXHASH_DATA", str(tmp_path))
    assert resolved(PAPER).descriptors.name == scales.STAND_IN
    assert resolved(PAPER).descriptors.stands_in
    assert resolved(TINY) is TINY
    (files,) = datasets.entry("sift1m").files
    files.home.mkdir()
    for file in files.files:
        (files.home / file.name).touch()
    assert resolved(PAPER) is PAPER


def test_ground_truth_is_apart_from_what_is_trained_on():
    data = Data("digits", 60, 200, 20, labelled=False, n_true=10)
    assert data.load().query.neighbors is None
    assert data.load().train.y is None
    judged = data.judged()
    assert judged.query.neighbors.shape == (20, 10)
    assert "10 nearest base points" in judged.protocol
    distance = np.linalg.norm(judged.base.X.astype(float) - judged.query.X[0].astype(float), axis=1)
    assert distance[judged.query.neighbors[0]].max() <= np.sort(distance)[9]


@pytest.mark.parametrize("name", SCALES)
def test_every_figure_has_work_at_every_scale(name):
    for figure in FIGURES.values():
        groups = getattr(figure, "groups", None)
        groups_or_jobs = groups(SCALES[name]) if groups else figure.jobs(SCALES[name])
        assert groups_or_jobs, figure.name


def test_losses_are_those_of_the_codes(tmp_path):
    some = group(("ITQ",), seeds=1)
    cells = keep(some, tmp_path)
    (record,) = some.records(cells)
    codes = np.unpackbits(some.codes("ITQ", 4, cells)["train"], axis=1, count=4, bitorder="little")
    Z = 2 * codes.astype(np.int8) - 1
    assert record.loss == losses.total(Z, drawn(DATA, (5, 25), 0), "ksh")
    assert record.effective["base"] <= 4


def test_no_setting_is_dropped():
    (training,) = group(("MACcut",), seeds=1, hash_functions=("rbf",)).trainings()
    hasher = training.hasher()
    assert (hasher.hash_function, hasher.n_bits, hasher.n_similar) == ("rbf", 4, 5)
    assert hasher.mu == pytest.approx(0.03)
    for method in ("ITQ", "MACcut"):
        (training,) = group((method,), seeds=1).trainings()
        assert training.hasher().n_bits == 4

    class Fixed(Hasher):
        """A hasher that nothing can be set of."""

    with pytest.raises(ValueError, match="Invalid parameter 'n_bits'"):
        runs.prepared(Fixed(), 4)


def test_a_damaged_run_counts_as_missing(tmp_path):
    some = group(("ITQ",))
    path = keep(some, tmp_path).path(some.trainings()[0].configuration())
    path.write_bytes(path.read_bytes()[:-50])
    cells = Cells(tmp_path)
    with pytest.warns(UserWarning, match="is no result of a run"):
        assert [record.seed for record in some.records(cells)] == [1]
    assert len(some.facts(cells)) == 1  # and it is told once


def test_the_paper_s_methods_learn_from_the_same_pairs_with_linear_hash_functions(tmp_path):
    some = group(("KSH", "BRE", "STH"), seeds=1)
    data, pairs = DATA.load(), drawn(DATA, (5, 25), 0)
    cells = keep(some, tmp_path)
    for training in some.trainings():
        hasher = training.hasher()
        assert runs.learns_from_pairs(hasher)
        expected = hasher.fit(data.train.X, affinity=pairs).encode(data.query.X)
        codes = cells.read(training.configuration())[1]["query"]
        np.testing.assert_array_equal(codes, expected, err_msg=training.method)
    ksh, bre, sth = (training.hasher() for training in some.trainings())
    assert (ksh.hash_function, bre.kernel, sth.hash_function) == ("linear",) * 3
    both = group(("KSH",), seeds=1, hash_functions=("rbf", "linear")).trainings()
    assert [training.hasher().hash_function for training in both] == ["rbf", "linear"]
