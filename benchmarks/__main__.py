"""python -m benchmarks [NAME ...] [--small]: run the named benchmarks, or all."""

import sys
from importlib import import_module

NAMES = ["core", "data", "search", "metrics", "baselines", "libsvm", "optima"]


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    names = [name for name in arguments if name != "--small"] or NAMES
    for name in names:
        if name not in NAMES:
            raise SystemExit(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
        import_module(f"benchmarks.{name}").main(small)


if __name__ == "__main__":
    main(sys.argv[1:])
