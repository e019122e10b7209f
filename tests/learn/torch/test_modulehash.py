"""A module as a hash function: what the h step, refinement and encoding ask of it."""

import contextlib
import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.learn.torch.made import N_BITS, Small, dense, hashed, pictures, points, small

torch = pytest.importorskip("torch")

from auxhash.codes import sign  # noqa: E402
from auxhash.learn.torch import ModuleHash, learning  # noqa: E402
from auxhash.mac.hashfunctions import get, h_step, is_shared, is_smooth, outputs  # noqa: E402
from auxhash.model.identity import in_words  # noqa: E402

ALL = np.arange(N_BITS)


def codes(n, seed=0):
    return np.where(np.random.default_rng(seed).random((n, N_BITS)) < 0.5, -1, 1).astype(np.int8)


def by_class(y, seed=0):
    return codes(3, seed)[y]


@pytest.fixture
def prepared():
    X, y = points()
    return hashed().prepare(X, np.random.default_rng(0)), X, by_class(y)


def test_it_is_a_hash_function():
    h = hashed()
    assert get(h, 1.0) is h
    assert is_smooth(h)
    assert is_shared(h)


def test_h_step_learns_the_codes(prepared):
    h, X, Z = prepared
    new, H = h_step(h, None, X, Z, ALL)
    assert (H == Z).mean() > 0.9
    np.testing.assert_array_equal(H, sign(new.decision(X)))
    assert new.decision(X).dtype == np.float64


def test_outputs_are_those_of_the_module():
    module = dense()
    X, _ = points()
    h = hashed(module).prepare(X, np.random.default_rng(0))
    with torch.no_grad():
        expected = module(torch.from_numpy(X).float()).numpy()
    np.testing.assert_array_equal(outputs(h, X), expected.astype(np.float64))


def test_the_module_given_is_not_changed():
    module, (X, y) = small(), pictures()
    before = copy.deepcopy(module.state_dict())
    h = hashed(module).prepare(X, np.random.default_rng(0))
    new = h.refit(X, by_class(y), ALL)
    moved = new.smooth(X, np.random.default_rng(0))
    moved.batch(np.arange(20), None)
    new.decision(X)
    assert module.training
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert any((new.state[name] != h.state[name]).any() for name in h.state)


@pytest.mark.parametrize("settings", [{"loss": "hinge"}, {"optimizer": "sgd", "rate": 0.1}, {}])
def test_same_seed_same_weights(settings):
    X, y = pictures()
    Z = by_class(y)

    def train(seed):
        h = hashed(small(), epochs=2, more_epochs=1, **settings)
        h = h.prepare(X, np.random.default_rng(seed))
        torch.manual_seed(np.random.default_rng().integers(1 << 30))  # of no effect
        return h.refit(X, Z, ALL).refit(X, Z, ALL)

    first, second, other = train(0), train(0), train(1)
    for name, array in first.state.items():
        np.testing.assert_array_equal(array, second.state[name])
    assert any((array != other.state[name]).any() for name, array in first.state.items())


def test_training_leaves_pytorchs_generator_alone(prepared):
    h, X, Z = prepared
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    h.refit(X, Z, ALL)
    assert torch.equal(torch.rand(4), expected)


def test_later_steps_are_warm(prepared):
    """Without further epochs, the next h step starts, and ends, where the last one did."""
    _, X, Z = prepared
    h = hashed(more_epochs=0).prepare(X, np.random.default_rng(0))
    first = h.refit(X, Z, ALL)
    second = first.refit(X, -Z, ALL)
    np.testing.assert_array_equal(first.decision(X), second.decision(X))
    assert second.n_refits == 2


def test_weights_count(prepared):
    """Of two points that disagree, the heavier one has its way."""
    h, X, Z = prepared
    X, Z = np.concatenate([X, X]), np.concatenate([Z, -Z])
    weight = np.ones(Z.shape)
    weight[len(X) // 2 :] = 0.01
    _, H = h_step(h, None, X, Z, ALL, weight)
    assert (H == Z)[: len(X) // 2].mean() > 0.9


def test_a_module_that_is_worse_in_all_is_not_taken_over(prepared, monkeypatch):
    h, X, Z = prepared
    good, H = h_step(h, None, X, Z, ALL)

    def spoil(module, *rest):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(-p)

    monkeypatch.setattr(learning, "learn_codes", spoil)
    kept, H2 = h_step(good, H, X, Z, ALL)
    assert kept is good
    np.testing.assert_array_equal(H2, H)


def test_a_module_that_is_better_in_all_is_taken_whole(prepared):
    """Though single bits be worse: no bit comes from another module."""
    h, X, Z = prepared
    first, H = h_step(h, None, X, codes(len(X)), ALL)
    new, H2 = h_step(first, H, X, Z, ALL)
    assert (H2 != Z).sum() < (H != Z).sum()
    np.testing.assert_array_equal(H2, sign(new.decision(X)))


def test_no_bit_can_be_taken(prepared):
    h, _, _ = prepared
    with pytest.raises(TypeError, match="share layers"):
        h.take(h, ALL)


def test_dropout_and_normalisation_are_off_in_encoding():
    X, y = pictures()
    h = hashed(small()).prepare(X, np.random.default_rng(0)).refit(X, by_class(y), ALL)
    np.testing.assert_array_equal(h.decision(X), h.decision(X))
    np.testing.assert_allclose(h.decision(X)[:7], h.decision(X[:7]), rtol=1e-4, atol=1e-5)


def test_pictures_come_as_numbers_with_channels_first():
    seen = []

    class Look(Small):
        def forward(self, x):
            seen.append(x)
            return super().forward(x)

    X, _ = pictures()
    hashed(Look()).prepare(X, np.random.default_rng(0)).decision(X[:5])
    [x] = seen
    assert x.shape == (5, 3, 8, 8)
    np.testing.assert_allclose(x[2, 1].numpy(), X[2, :, :, 1] / 255, rtol=1e-6)
    grey = hashed(small(channels=1)).prepare(X[..., 0], np.random.default_rng(0))
    assert grey.decision(X[..., 0]).shape == (len(X), N_BITS)


def test_augmentation_is_for_training_alone_and_seeded():
    seen = []

    def brighter(batch, generator):
        more = torch.randint(0, 100, (len(batch),), generator=generator)
        seen.append(more)
        return batch + more.view(-1, 1, 1, 1).to(torch.uint8)

    X, y = pictures()
    h = hashed(small(), augment=brighter, epochs=2).prepare(X, np.random.default_rng(0))
    h.decision(X)
    assert not seen
    h.refit(X, by_class(y), ALL)
    first = list(seen)
    assert len(first) == 2 * (len(X) // 50)
    seen.clear()
    h.refit(X, by_class(y), ALL)
    assert all(torch.equal(a, b) for a, b in zip(first, seen, strict=True))


def test_an_own_way_to_the_input():
    def flat(batch):
        return batch.float().flatten(1) / 255

    X, _ = pictures()
    h = hashed(dense(8 * 8 * 3), to_input=flat).prepare(X, np.random.default_rng(0))
    assert h.decision(X).shape == (len(X), N_BITS)


def test_numbers_become_those_of_the_module():
    X, y = points()
    h = hashed(dense().double()).prepare(X, np.random.default_rng(0))
    new, _ = h_step(h, None, X, by_class(y), ALL)
    assert {array.dtype for array in new.state.values()} == {np.dtype(np.float64)}


def test_half_precision_in_training_alone():
    X, y = points()
    h = hashed(half=True).prepare(X, np.random.default_rng(0))
    new, H = h_step(h, None, X, by_class(y), ALL)
    assert (H == by_class(y)).mean() > 0.9
    assert {array.dtype for array in new.state.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("X", "got"),
    [
        (np.zeros((4, 8, 8, 3)), "float64 of shape"),
        (np.zeros((4, 8, 7, 3), np.uint8), r"uint8 of shape \(4, 8, 7, 3\)"),
        (np.zeros((4, 192)), r"float64 of shape \(4, 192\)"),
    ],
)
def test_other_points_than_those_learnt_from_are_refused(X, got):
    h = hashed(small()).prepare(pictures()[0], np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"must be uint8 of shape \(n, 8, 8, 3\).*got {got}"):
        outputs(h, X)


def test_copies_and_pickles_compute_the_same(prepared):
    h, X, Z = prepared
    h = h.refit(X, Z, ALL)
    expected = h.decision(X)
    for other in (copy.deepcopy(h), pickle.loads(pickle.dumps(h))):
        np.testing.assert_array_equal(other.decision(X), expected)


def test_words_tell_modules_apart():
    same = [in_words(hashed(small())) for _ in range(2)]
    assert same[0] == same[1]
    wide = small()
    wide.drop.p = 0.2
    frozen = small()
    frozen.first.weight.requires_grad_(False)
    others = [
        hashed(small(seed=1)),
        hashed(small(), batch=51),
        hashed(small(), augment=lambda batch, generator: batch),
        hashed(wide),
        hashed(frozen),
        hashed(dense()),
    ]
    assert len({same[0], *map(in_words, others)}) == 1 + len(others)


def test_few_points_take_more_rounds():
    assert ModuleHash(dense(), batch=50)._epochs(10_000) == 20
    assert ModuleHash(dense(), batch=50)._epochs(150) == 67
    assert ModuleHash(dense(), batch=50, n_refits=1)._epochs(10_000) == 5
    assert ModuleHash(dense(), epochs=1)._epochs(150) == 1


def test_frozen_weights_stay():
    module = dense()
    module[0].weight.requires_grad_(False)
    X, y = points()
    h = hashed(module).prepare(X, np.random.default_rng(0))
    new = h.refit(X, by_class(y), ALL)
    np.testing.assert_array_equal(new.state["0.weight"], h.state["0.weight"])
    assert (new.state["2.weight"] != h.state["2.weight"]).any()


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"module": "net"}, TypeError, "module must be a torch.nn.Module, got str"),
        ({"loss": "logit"}, ValueError, "loss must be one of logistic, hinge"),
        ({"epochs": -1}, ValueError, "epochs must be a whole number"),
        ({"batch": 0}, ValueError, "batch must be a whole number"),
        ({"rate": 0.0}, ValueError, "rate must be a number above 0"),
        ({"decay": -1.0}, ValueError, "decay must be a number"),
        ({"optimizer": "adam"}, ValueError, "did you mean 'adamw'"),
        ({"schedule": "cosine"}, ValueError, "schedule must be one of"),
        ({"half": "yes"}, ValueError, "half must be True or False"),
        ({"augment": "flip"}, TypeError, "augment must be a function"),
    ],
)
def test_settings_are_checked(settings, error, says):
    with pytest.raises(error, match=says):
        ModuleHash(**{"module": dense(), **settings})


def test_what_cannot_be_held_is_refused():
    X, _ = points()
    for module, says in [
        (dense().bfloat16(), "bfloat16, which cannot be stored"),
        (torch.nn.LazyLinear(N_BITS), "no shape for weight yet"),
    ]:
        with pytest.raises((TypeError, ValueError), match=says):
            hashed(module).prepare(X, np.random.default_rng(0))


def test_weights_that_run_away_are_told(prepared):
    _, X, Z = prepared
    h = hashed(optimizer="sgd", rate=1e30).prepare(X, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no longer finite: lower its rate"):
        h.refit(X, Z, ALL)


def test_it_says_what_it_is():
    assert repr(ModuleHash(dense(), epochs=3)) == "ModuleHash(Sequential, epochs=3)"


def test_unfitted():
    with pytest.raises(ValueError, match="not prepared"):
        hashed().features(points()[0])
    with pytest.raises(ValueError, match="not fitted"):
        hashed().decision(points()[0])


def test_the_flags_of_cudnn_stay_until_the_last_thread_is_done():
    cudnn = torch.backends.cudnn
    with cudnn.flags(deterministic=False, benchmark=True):
        first, second = learning.repeatable(), learning.repeatable()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
        second.__exit__(None, None, None)
        assert (cudnn.deterministic, cudnn.benchmark) == (False, True)


def test_threads_do_not_draw_from_one_another_s_generator():
    both = threading.Barrier(2)

    def drawn(seed):
        with learning.seeded(seed, torch.device("cpu")):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.3)  # until another has begun as well, if it can
            return torch.rand(3).tolist()

    before = torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        result = list(pool.map(drawn, [1, 2]))
    np.testing.assert_array_equal(torch.get_rng_state(), before)
    assert result == [drawn(1), drawn(2)]
