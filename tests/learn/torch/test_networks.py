"""Ready modules, augmentation of pictures, and ONNX."""

import re

import numpy as np
import pytest

from auxhash.compute.extras import install
from tests.learn.torch.made import N_BITS, hashed, pictures, points, small

torch = pytest.importorskip("torch")

from auxhash import MACHash, export_onnx, load  # noqa: E402
from auxhash.learn.torch import augment, feature_network, residual_network  # noqa: E402
from auxhash.learn.torch.networks import BothWays, Residual  # noqa: E402

SMALL = {"n_bits": N_BITS, "n_similar": 10, "n_dissimilar": 20, "random_state": 0, "n_jobs": 1}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def numbered(n=40, side=8):
    """Pictures (n, side, side, 2) in which each pixel tells its row and its column, from 1."""
    grid = np.indices((side, side)).transpose(1, 2, 0) + 1
    return torch.from_numpy(np.tile(grid, (n, 1, 1, 1)).astype(np.uint8))


def test_crops_move_whole_pictures():
    before = numbered()
    after = augment.crops(before, generator(), 2).numpy()
    padded = np.pad(before[0].numpy(), ((2, 2), (2, 2), (0, 0)), mode="reflect")
    moved = {(r, c): padded[r : r + 8, c : c + 8] for r in range(5) for c in range(5)}
    places = [at for picture in after for at, one in moved.items() if (one == picture).all()]
    assert len(places) == len(after)
    assert {r for r, _ in places} == {c for _, c in places} == set(range(5))
    assert after.dtype == np.uint8


def test_crops_of_more_pixels_than_there_are():
    after = augment.crops(numbered(20, side=2), generator(), 5)
    assert after.shape == (20, 2, 2, 2)
    assert set(after.unique().tolist()) == {1, 2}


def test_flips_mirror_half():
    before = numbered(200)
    after = augment.flips(before, generator())
    mirrored = (after == before.flip(2)).flatten(1).all(dim=1)
    same = (after == before).flatten(1).all(dim=1)
    assert (mirrored ^ same).all()
    assert 70 < mirrored.sum() < 130


def test_cut_outs_are_squares():
    before = numbered(200, side=9)
    grey = 5  # the mean of 1 to 9
    after = augment.cut_outs(before, generator(), 3)
    cut = (after == grey).all(dim=3)
    assert torch.equal(after[~cut], before[~cut])
    assert cut.sum(dim=(1, 2)).max() == 10  # the middle of the picture is as grey
    assert cut.any(dim=0).all()
    for picture in cut:
        picture[4, 4] = False
        rows, columns = picture.any(dim=1).nonzero(), picture.any(dim=0).nonzero()
        assert rows[-1] - rows[0] < 3
        assert columns[-1] - columns[0] < 3


@pytest.mark.parametrize("channels", [(), (3,)])
def test_colours_change_contrast_and_brightness(channels):
    rng = torch.Generator().manual_seed(1)
    before = 50 + 30 * torch.randn((300, 8, 8, *channels), generator=rng)
    after = augment.colours(before, generator(), 0.2)
    numbers = after.flatten(1, 2).double(), before.flatten(1, 2).double()
    spread, old = (some.std(dim=1) for some in numbers)
    assert 0.799 < (spread / old).min() < 0.85
    assert 1.15 < (spread / old).max() < 1.201
    moved = (numbers[0] - numbers[1]).mean(dim=1)
    assert 5 < moved.abs().max() < 0.2 * 30 + 0.2 * 15
    torch.testing.assert_close(augment.colours(before, generator(), 0.0), before)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
def test_colours_of_whole_numbers(dtype):
    """They are rounded, and bytes end at 0 and 255."""
    before = torch.randint(0, 256, (40, 8, 8, 3), generator=generator(1)).to(dtype)
    after = augment.colours(before, generator(), 0.5)
    assert after.dtype == dtype
    want = augment.colours(before.float(), generator(), 0.5).round()
    assert want.min() < 0
    assert want.max() > 255
    bound = want.clamp(0, 255) if dtype == torch.uint8 else want
    assert torch.equal(after, bound.to(dtype))
    assert augment.cut_outs(before, generator()).dtype == dtype


def test_a_batch_of_one_colour():
    for before in (torch.full((3, 4, 4, 2), 7.0), torch.full((1, 1, 1, 2), 9, dtype=torch.uint8)):
        assert torch.equal(augment.colours(before, generator(), 0.2), before)


@pytest.mark.parametrize("grey", [False, True])
def test_warps_move_pixels_by_a_matrix(grey):
    """A picture whose pixels tell their places: where they moved to, a matrix explains."""
    side, most = 9, 0.2
    grid = np.indices((side, side)).transpose(1, 2, 0) - side // 2
    pictures = np.tile(grid, (300, 1, 1, 1)).astype(np.float64)
    before = torch.from_numpy(pictures[..., 0] if grey else pictures)
    after = augment.warps(before, generator(), most)
    assert after.shape == before.shape
    same = (after - before).abs().flatten(1).amax(dim=1) < 1e-12
    assert 110 < same.sum() < 190
    inner = slice(2, -2)  # further out, mirror images come in
    wanted = grid[inner, inner].reshape(-1, 2).astype(np.float64)
    entries = []
    for picture in after[~same].numpy():
        result = picture[inner, inner].reshape(len(wanted), -1)
        matrix, *_ = np.linalg.lstsq(wanted, result)
        np.testing.assert_allclose(wanted @ matrix, result, atol=1e-9)
        entries.append(matrix - np.eye(2)[:, : matrix.shape[1]])
    entries = np.array(entries)
    assert np.abs(entries).max() <= most
    assert (np.abs(entries).max(axis=0) > 0.9 * most).all()
    assert (entries.std(axis=0) > 0.09).all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
def test_warps_of_whole_numbers(dtype):
    before = torch.randint(0, 256, (40, 8, 8, 3), generator=generator(1)).to(dtype)
    after = augment.warps(before, generator(), 0.3)
    assert after.dtype == dtype
    exact = before.double() if dtype == torch.int64 else before.float()
    assert torch.equal(after, augment.warps(exact, generator(), 0.3).round().to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_warps_leave_half_of_the_pictures_as_they_are(dtype):
    """In any precision, and up to large numbers."""
    most = 1 if dtype.is_floating_point else 2**30
    before = (most * torch.rand(40, 32, 32, generator=generator(1)).double()).to(dtype)
    after = augment.warps(before, generator(), 0.2)
    assert 10 < (after == before).flatten(1).all(dim=1).sum() < 30


def test_warps_are_checked():
    assert augment.warps(torch.zeros(0, 8, 8), generator()).shape == (0, 8, 8)
    one = torch.full((3, 1, 1, 2), 7, dtype=torch.uint8)
    assert torch.equal(augment.warps(one, generator()), one)
    for wrong in (torch.zeros(3, 8), torch.zeros(1, 2, 3, 4, 5)):
        with pytest.raises(ValueError, match="pictures must be"):
            augment.warps(wrong, generator())
    for wrong in (-0.1, float("nan"), "much"):
        with pytest.raises(ValueError, match="most must be"):
            augment.warps(torch.zeros(3, 8, 8), generator(), wrong)


@pytest.mark.parametrize("shape", [(30, 8, 8, 3), (30, 8, 8)])
def test_all_of_them_are_seeded(shape):
    batch = torch.randint(0, 256, shape, dtype=torch.uint8)
    change = augment.RandomChanges(2, True, 3, warp=0.2)
    first, second, other = (change(batch, generator(seed)) for seed in (0, 0, 1))
    assert first.shape == batch.shape
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(augment.RandomChanges(0, False, 0, 0)(batch, generator()), batch)


@pytest.mark.parametrize(
    "settings",
    [{"crop": -1}, {"flip": 1}, {"cut_out": 2.5}, {"colour": -0.1}, {"warp": -0.1}],
)
def test_augmentation_is_checked(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        augment.RandomChanges(**settings)


def test_residual_network():
    network = residual_network(24, width=4)
    layers = [m for m in network.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    assert len(layers) == 9
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 24)
    assert residual_network(8, channels=1, width=4)(torch.zeros(2, 1, 28, 28)).shape == (2, 8)
    X, y = pictures()
    hasher = MACHash(hash_function=hashed(residual_network(N_BITS, width=4)), max_iter=1, **SMALL)
    assert hasher.set_params(refine=None).fit(X, y).loss_ > 0


def test_the_residual_network_standardises_channels_and_is_smooth():
    network = residual_network(8, width=4).train()
    x = torch.rand(6, 3, 16, 16, generator=generator(), dtype=torch.float64)
    scaled = x * torch.tensor([2.0, 0.5, 30.0]).view(1, 3, 1, 1) + torch.tensor(
        [0.0, 9.0, -4.0]
    ).view(1, 3, 1, 1)
    network = network.double()
    torch.testing.assert_close(network(scaled), network(x), rtol=1e-3, atol=1e-3)
    assert not any(isinstance(m, torch.nn.ReLU) for m in network.modules())


def test_both_ways():
    inner = residual_network(5, width=2)
    both = BothWays(inner)
    x = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        both.eval()
        one, other = both(x), both(x.flip(3))
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(one, (inner(x) + inner(x.flip(3))) / 2)
        both.train()
        trained = both(x)
        torch.testing.assert_close(trained, inner(x))


def test_both_ways_with_shifts():
    """Six views: a module whose outputs are the pixels tells which of them were read."""
    pixel = torch.nn.Sequential(torch.nn.Flatten())  # every pixel is an output
    both = BothWays(pixel, shift=2).eval()
    x = torch.rand(3, 2, 6, 7, generator=generator(), dtype=torch.float64)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")
    views = [(2, x.numpy()), (1, padded[:, :, :6, :7]), (1, padded[:, :, 4:, 4:])]
    want = sum(weight * (view + view[..., ::-1]) / 2 for weight, view in views) / 4
    np.testing.assert_allclose(both(x).numpy(), want.reshape(3, -1), rtol=1e-12)
    assert torch.equal(both.train()(x), pixel(x))
    with pytest.raises(ValueError, match="shift must be"):
        BothWays(pixel, shift=-1)
    with pytest.raises(ValueError, match="below the sides of 6 x 7 pixels, got 6"):
        BothWays(pixel, shift=6).eval()(x)


def test_a_model_refuses_a_module_with_another_shift(tmp_path):
    X, y = pictures()
    inner = residual_network(N_BITS, width=2, blocks=(0, 0, 0))
    hasher = MACHash(hash_function=hashed(BothWays(inner, shift=1)), max_iter=1, **SMALL)
    hasher.set_params(refine=None).fit(X, y).save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors", module=BothWays(inner, shift=1))
    assert np.array_equal(loaded.encode(X), hasher.encode(X))
    for shift in (0, 2):
        with pytest.raises(ValueError, match=r"shift_[12]"):
            load(tmp_path / "m.safetensors", module=BothWays(inner, shift=shift))


def test_residual_blocks():
    network = residual_network(5, width=2, blocks=(2, 1, 0))
    layers = [m for m in network.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    assert len(layers) == 5 + 2 * 3
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
    residual = [m.inner[0][0].out_channels for m in network if isinstance(m, Residual)]
    assert residual == [4, 4, 8]
    for wrong in ((1, 1), (1, 1, -1), (1, 1, 0.5), 1, None, {0, 1, 2}):
        with pytest.raises(ValueError, match="blocks must be"):
            residual_network(5, blocks=wrong)


def test_feature_network():
    X, y = points()
    network = feature_network(6, N_BITS, units=32, dropout=0.2, noise=0.1)
    hasher = MACHash(hash_function=hashed(network), max_iter=2, refine=None, **SMALL)
    assert hasher.fit(1000 * X + 7, y).score(1000 * X + 7, y, k=20) > 0.7


@pytest.mark.parametrize("settings", [{"dropout": 1.0}, {"noise": -1.0}, {"units": 0}])
def test_networks_are_checked(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        feature_network(6, N_BITS, **settings)


@pytest.mark.parametrize("kind", ["pictures", "features"])
def test_onnx_gives_the_same_packed_codes(kind, tmp_path):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = pictures() if kind == "pictures" else points()
    module = small(n_bits=11) if kind == "pictures" else feature_network(6, 11, units=8)
    hasher = MACHash(hash_function=hashed(module), max_iter=1, refine=None, **SMALL)
    hasher.set_params(n_bits=11).fit(X, y)
    export_onnx(hasher, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    fed = X if kind == "pictures" else X.astype(np.float32)
    [codes] = session.run(["codes"], {"features": fed})
    assert codes.dtype == np.uint8
    assert codes.shape == (len(X), 2)
    assert (codes == hasher.encode(X)).mean() > 0.99  # but for outputs within rounding of zero


def test_onnx_needs_onnxscript(tmp_path, monkeypatch):
    import sys

    X, y = points()
    hasher = MACHash(hash_function=hashed(), max_iter=1, refine=None, **SMALL).fit(X, y)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=re.escape(install("torch"))):
        export_onnx(hasher, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
