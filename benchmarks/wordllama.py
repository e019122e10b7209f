"""WordLlama: a static embedding of texts, 256 features, the mean of its tokens' vectors.

A second, cheap model of the texts that MiniLM embeds. Weights and tokenizer are those of the Python
package wordllama 0.2.2.post0 (MIT), of which no code is run; it needs `tokenizers`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel

WEIGHTS, TOKENIZER = "l2_supercat_256.safetensors", "l2_supercat_tokenizer_config.json"
MODEL = Collection(
    "wordllama",
    (
        File(WEIGHTS, sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"),
        File(TOKENIZER, sha256="bf467c9e0f536bda271283c6ef85eb1a943e3196b621c8a912d64953b205df83"),
    ),
    (
        Wheel(
            "wordllama",
            "0.2.2.post0",
            lambda path: archives.from_zip(path, [WEIGHTS, TOKENIZER]),
        ),
    ),
)
MAX_TOKENS = 512
TEXTS_PER_BATCH = 1000


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return vectors (n, 256) of length 1; a text without tokens has zeros."""
    from tokenizers import Tokenizer

    home = MODEL.obtain()
    tokenizer = Tokenizer.from_file(str(home / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    [weights] = load_file(home / WEIGHTS).values()
    table = weights.astype(np.float32)
    X = np.zeros((len(texts), table.shape[1]), np.float32)
    for start in range(0, len(texts), TEXTS_PER_BATCH):
        batch = list(texts[start : start + TEXTS_PER_BATCH])
        for i, coded in enumerate(tokenizer.encode_batch(batch, add_special_tokens=False)):
            if coded.ids:
                X[start + i] = table[coded.ids].mean(axis=0)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    X /= np.where(length == 0, 1, length)
    return X
