"""python -m benchmarks [NAME ...] [--small]: run the named benchmarks, or all but the longest.

`speed` (make bench) has every speed that is stated somewhere, in one table with verdicts; others
show more of one part. Options follow the name of a benchmark that has some, as in
python -m benchmarks speed --help.
"""

import sys
from importlib import import_module

NAMES = [
    "core",
    "data",
    "search",
    "tablescan",
    "metrics",
    "baselines",
    "libsvm",
    "optima",
    "neighbors",
]
NAMES += ["setting", "encoding", "serve", "speed", "scale", "deep", "networks", "cluster", "gpu"]
NAMES += ["unseen", "learning", "differs", "hstep", "figures", "startup", "bits", "queries", "maps"]
NAMES += ["autoencoder", "cascade"]
# Hours, some data sets to fetch, or a cluster; speed is all in one.
WITH_OPTIONS = {"neighbors", "setting", "speed", "scale", "deep", "networks", "cluster", "gpu"}
WITH_OPTIONS |= {"unseen", "learning", "differs", "hstep", "figures", "bits", "queries", "maps"}
WITH_OPTIONS |= {"autoencoder"}
ONLY_BY_NAME = WITH_OPTIONS | {"cascade"}


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    words = [argument for argument in arguments if argument != "--small"]
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    names, options = words[:first], words[first:]
    names = names or [name for name in NAMES if name not in ONLY_BY_NAME]
    for name in names:
        if name not in NAMES:
            raise SystemExit(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    if options and not (len(names) == 1 and names[0] in WITH_OPTIONS):
        only = ", ".join(sorted(WITH_OPTIONS))
        raise SystemExit(f"{options[0]} is no option of these; only {only}, alone, have options")
    for name in names:
        run = import_module(f"benchmarks.{name}").main
        run(small, options) if options else run(small)


if __name__ == "__main__":
    main(sys.argv[1:])
