"""Find pictures of the same class that look alike, in a folder with one folder per class.

    python examples/labelled_pictures.py photos new-photos

Without folders it makes small ones, of handwritten digits. The same commands work in a shell.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from auxhash.cli import main as auxhash


def make(folder: Path, rows: slice) -> None:
    """Write digits as pictures, in folders named after their class."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    for i, (x, label) in enumerate(zip(X[rows], y[rows], strict=True)):
        path = folder / f"digit-{label}" / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((15 * x).astype(np.uint8).reshape(8, 8)).resize((32, 32)).save(path)


def run(command: str) -> None:
    """Run a command of auxhash, as a shell would."""
    print(f"\n$ auxhash {command}")
    auxhash(command.split(), standalone_mode=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", nargs="?", default="photos")
    parser.add_argument("new", nargs="?", default="new-photos")
    parser.add_argument("--steps", type=int, default=500, help="gradient steps of `fit`")
    options = parser.parse_args()
    photos, new, steps = options.photos, options.new, options.steps
    if not Path(photos).exists():
        make(Path(photos), slice(0, 500))
        make(Path(new), slice(1000, 1010))

    run(f"fit {photos} -o photos.safetensors --steps {steps}")
    run(f"encode photos.safetensors {photos} -o codes.safetensors")
    run(f"index codes.safetensors -o photos.index --ids {photos}")
    run(f"search photos.index {new} --model photos.safetensors -k 3")
    run(f"search photos.index {new} --model photos.safetensors -k 3 --rerank {photos}")
    run(f"evaluate {new} {photos} --model photos.safetensors -k 10")


if __name__ == "__main__":
    main()
