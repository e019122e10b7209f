"""python -m benchmarks [NAME ...] [--small]: run the named benchmarks, or all but the longest.

Options of `neighbors` and `setting` follow their names: python -m benchmarks neighbors --help.
"""

import sys
from importlib import import_module

NAMES = ["core", "data", "search", "metrics", "baselines", "libsvm", "optima", "neighbors"]
NAMES += ["setting", "cluster"]
ONLY_BY_NAME = {"neighbors", "setting", "cluster"}  # hours, data to fetch, or a cluster
WITH_OPTIONS = {"neighbors", "setting"}


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    given = [argument for argument in arguments if argument != "--small"]
    first = next((n for n, word in enumerate(given) if word.startswith("-")), len(given))
    names, options = given[:first], given[first:]
    names = names or [name for name in NAMES if name not in ONLY_BY_NAME]
    for name in names:
        if name not in NAMES:
            raise SystemExit(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    if options and not (len(names) == 1 and names[0] in WITH_OPTIONS):
        only = " and ".join(sorted(WITH_OPTIONS))
        raise SystemExit(f"{options[0]} is no option of these; only {only}, alone, have options")
    for name in names:
        run = import_module(f"benchmarks.{name}").main
        run(small, options) if options else run(small)


if __name__ == "__main__":
    main(sys.argv[1:])
