import re
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

from auxhash.compute.extras import install
from auxhash.files import images, rows
from auxhash.files.gist import gist
from tests.conftest import SOAK
from tests.programs import run_python


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, (kind, suffix) in enumerate([("b", "png"), ("a", "png"), ("a/deep", "bmp")]):
        pixels = rng.integers(0, 256, (32 + 4 * i, 40, 3), np.uint8)
        path = tmp_path / "pictures" / kind
        path.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path / f"{i}.{suffix}")
    (tmp_path / "pictures" / "a" / "notes.txt").write_text("no picture")
    (tmp_path / "pictures" / "no.png").mkdir()
    hidden = tmp_path / "pictures" / ".cache"
    hidden.mkdir()
    (hidden / "x.png").write_bytes(b"")
    return tmp_path / "pictures"


def test_pictures_by_class(folder):
    pictures = images.image_folder(folder)
    assert pictures.names == ["a/1.png", "a/deep/2.bmp", "b/0.png"]
    assert pictures.labels.tolist() == ["a", "a", "b"]
    assert images.image_folder(folder / "b").labels is None


def test_gist_of_the_centred_square(folder):
    path = folder / "square.png"
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(pixels).save(path)
    features = images.gist_feature(32).of([path])
    np.testing.assert_array_equal(features, gist(pixels[None]))
    wide = np.zeros((32, 50), np.uint8)
    wide[:, 9:41] = pixels
    Image.fromarray(wide).save(path)
    np.testing.assert_array_equal(images.gist_feature(32).of([path]), features)


def test_the_side_follows_the_pictures(folder):
    pictures = images.image_folder(folder)
    assert images.feature_for(pictures).name == "gist:36"
    for path in pictures.paths:
        Image.fromarray(np.zeros((200, 300, 3), np.uint8)).save(path)
    assert images.feature_for(pictures).name == "gist:64"


def test_grey_transparent_and_turned_pictures(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(np.full((4, 6), 7, np.uint8)).save(path)
    np.testing.assert_array_equal(images.read_image(path), np.full((4, 6, 3), 7))
    Image.fromarray(np.full((4, 6, 4), 9, np.uint8)).save(path)
    assert images.read_image(path).shape == (4, 6, 3)
    picture = Image.fromarray(np.zeros((4, 6, 3), np.uint8))
    exif = picture.getexif()
    exif[0x0112] = 6  # turned by a quarter
    picture.save(tmp_path / "a.jpg", exif=exif)
    assert images.read_image(tmp_path / "a.jpg").shape == (6, 4, 3)


def test_rows_of_pictures(folder):
    pictures = images.image_folder(folder)
    feature = images.gist_feature(16)
    part = rows.of_images(pictures, feature)
    np.testing.assert_array_equal(part.all(), feature.of(pictures.paths))
    assert part.labels.tolist() == ["a", "a", "b"]


def test_a_feature_of_one_s_own_that_fails(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_feature.py").write_text(
        "def fails(pictures):\n    return {}['lost']\n"
        "def short(pictures):\n    return [[1.0]]\n"
        "def holes(pictures):\n    return [[float('nan')]] * len(pictures)\n"
    )
    paths = images.image_folder(folder).paths
    for name, message in [
        ("fails", "the feature broken_feature:fails failed: KeyError: 'lost'"),
        ("short", "for 3 pictures must be as many rows, got 1"),
        ("holes", "must not hold NaN or infinity; row 0 does"),
    ]:
        with pytest.raises(ValueError, match=message):
            images.own_feature(f"broken_feature:{name}").of(paths)
    with pytest.raises(ValueError, match=r"learnt from a:b, not from c:d"):
        images.remembered("a:b", "c:d")
    with pytest.raises(ValueError, match="learnt from GIST, not from c:d"):
        images.remembered("gist:32", "c:d")


def test_without_pillow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=re.escape(install("images"))):
        images.read_image(folder / "a" / "1.png")


def test_sixteen_bits_keep_their_upper_eight(tmp_path):
    deep = np.array([[0, 255, 256], [40_000, 65_279, 65_535]], np.uint16)
    expected = np.repeat((deep >> 8).astype(np.uint8)[..., None], 3, 2)
    for name in ("a.png", "a.tif"):
        Image.fromarray(deep).save(tmp_path / name)
        np.testing.assert_array_equal(images.read_image(tmp_path / name), expected)
    turned = Image.fromarray(deep)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(
        images.read_image(tmp_path / "a.png"), np.rot90(expected, -1, (0, 1))
    )
    wide = np.random.default_rng(0).integers(0, 2**16, (32, 32), np.uint16)
    Image.fromarray(wide).save(tmp_path / "b.png")
    features = images.gist_feature(32).of([tmp_path / "b.png"])
    np.testing.assert_array_equal(features, gist((wide >> 8).astype(np.uint8)[None]))


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_thirty_two_bits_are_refused(tmp_path, kind):
    path = tmp_path / "a.tif"
    Image.fromarray(np.ones((4, 6), kind)).save(path)
    with pytest.raises(
        ValueError, match=r"a\.tif is no picture .* 32 bits per channel, and 8 or 16"
    ):
        images.read_image(path)


def test_transparency_is_left_out_and_the_first_frame_taken(tmp_path):
    colours = np.random.default_rng(0).integers(0, 256, (4, 6, 4), np.uint8)
    Image.fromarray(colours).save(tmp_path / "a.png")
    np.testing.assert_array_equal(images.read_image(tmp_path / "a.png"), colours[..., :3])
    frames = [Image.new("L", (6, 4), value) for value in (50, 200)]
    for name in ("a.gif", "a.tif"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
        np.testing.assert_array_equal(images.read_image(tmp_path / name), np.full((4, 6, 3), 50))


def test_bombs_are_seen_in_the_header(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    Image.new("1", (300, 200)).save(path)
    monkeypatch.setattr(images, "MAX_PIXELS", 50_000)
    monkeypatch.setattr(Image.Image, "load", None)  # nothing is decoded
    with pytest.raises(ValueError, match=r"at most 50,000 pixels are read: it has 300 x 200 pix"):
        images.read_image(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20_000)  # above twice that, Pillow refuses
    with pytest.raises(ValueError, match=r"a\.png is too large a picture.*60000 pixels"):
        images.read_image(path)


def test_only_pictures_are_decoded_whatever_they_are_called(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    with pytest.raises(ValueError, match=r"a\.png is no picture that can be read"):
        images.read_image(tmp_path / "a.png")


def test_sizes_are_read_without_decoding(folder, monkeypatch):
    pictures = images.image_folder(folder)
    monkeypatch.setattr(Image.Image, "load", None)
    assert images.feature_for(pictures).name == "gist:36"


def test_a_large_jpeg_is_decoded_as_small_as_will_do(tmp_path):
    path = tmp_path / "a.jpg"
    y, x = np.mgrid[:900, :1200] / 150
    pixels = 127 + 60 * np.sin(3 * x + y) + 60 * np.cos(2 * y)
    for shape, size in [((900, 1200), (450, 600)), ((200, 250), (200, 250))]:
        part = pixels[: shape[0], : shape[1]].astype(np.uint8)
        Image.fromarray(part).convert("RGB").save(path, quality=95)
        with Image.open(path) as image:
            image.draft("RGB", (256, 256))
            assert image.size == size[::-1]
        full = Image.fromarray(images.read_image(path)).convert("L")
        expected = ImageOps.fit(full, (64, 64), Image.Resampling.BILINEAR)
        result = images.grey_square(path, 64)
        worst = np.abs(result.astype(int) - np.asarray(expected, int)).max()
        assert worst <= (2 if shape[0] > 512 else 0)


def test_few_pixels_are_held(tmp_path, monkeypatch):
    """Squares for GIST; whole pictures for one's own function, but not many at once."""
    paths = [tmp_path / f"{i}.png" for i in range(9)]
    for i, path in enumerate(paths):
        Image.new("RGB", (10, 10 * (1 + 5 * (i == 4))), (i, i, i)).save(path)
    monkeypatch.setattr(images, "MAX_CHUNK_PIXELS", 250)
    batches = []

    def means(pictures):
        batches.append([picture.shape for picture in pictures])
        return [[picture.mean()] for picture in pictures]

    result = images.ImageFeature("mine:means", means).of(paths)
    assert result[:, 0].tolist() == list(range(9))
    small, large = (10, 10, 3), (60, 10, 3)
    assert batches == [[small] * 2, [small] * 2, [large], [small] * 2, [small] * 2]
    batches.clear()
    reduced = images.ImageFeature("gist:16", means, lambda path: images.grey_square(path, 16))
    assert reduced.of(paths)[:, 0].tolist() == list(range(9))
    assert batches == [[(16, 16)] * 9]


def test_all_rows_of_one_s_own_feature_are_of_one_length(folder, monkeypatch):
    monkeypatch.setattr(images, "PICTURES_PER_CHUNK", 2)
    paths = images.image_folder(folder).paths
    feature = images.ImageFeature("mine:odd", lambda pictures: np.ones((len(pictures),) * 2))
    with pytest.raises(ValueError, match=r"mine:odd returns must have as many columns.*2 at first"):
        feature.of(paths)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, to measure memory")
def test_memory_does_not_grow_with_the_pictures(tmp_path):
    """Many pictures of 12 megapixels, 36 MB each as pixels, take no more memory than two."""
    n = 16 if SOAK else 8
    Image.new("RGB", (4000, 3000), (200, 90, 20)).save(tmp_path / "00.png", compress_level=1)
    for i in range(1, n):
        (tmp_path / f"{i:02}.png").hardlink_to(tmp_path / "00.png")
    code = f"""
        import resource
        from pathlib import Path
        from auxhash.compute import context
        from auxhash.files import images
        from auxhash.files import rows

        root = Path({str(tmp_path)!r})

        def peak(n):
            folder = images.ImageFolder(root, sorted(root.iterdir())[:n], None)
            with context.using(n_jobs=1):
                assert len(rows.of_images(folder, images.feature_for(folder)).all()) == n
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        few, many = peak(2), peak({n})
        print((many - few) / 1024)
    """
    assert float(run_python(code)) < 100


def test_a_part_that_states_gigabytes_is_no_picture(tmp_path, monkeypatch):
    """Pillow asks for all of it at once, and may not get it."""
    Image.new("L", (12, 12)).save(tmp_path / "a.png")

    def too_much(*args):
        raise MemoryError

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", too_much)
    with pytest.raises(ValueError, match=r"a\.png is no picture that can be read: .*memory"):
        images.read_image(tmp_path / "a.png")
