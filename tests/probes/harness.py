"""Run many random cases of a probe in a process of its own, so that a crash is seen.

A probe is a function of (seed, folder): it raises where an answer is wrong. The process says which
case it begins; where it dies or hangs, that case has failed, and another process goes on with the
next one.
"""

import importlib
import os
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from threading import Timer

MEMORY = 6 << 30  # bytes that a process may take
PATIENCE = 120  # seconds for one case
SOAK = bool(os.environ.get("AUXHASH_SOAK"))


def run(probe: str, brief: int, soak: int) -> None:
    """Run `brief` cases of a probe, "module:function", or `soak` under make soak.

    Raises AssertionError with the cases that failed.
    """
    n, first, failures = soak if SOAK else brief, 0, []
    while first < n and len(failures) < 5:
        first, failed = _some(probe, first, n)
        failures += failed
    if failures:
        raise AssertionError(f"{probe}: of {first} cases\n" + "\n".join(failures))
    print(f"{probe}: {n} cases")


def _some(probe: str, first: int, n: int) -> tuple[int, list[str]]:
    """Run cases from `first` on, until all are done or the process ends; where to go on from."""
    command = [sys.executable, "-m", "tests.probes.harness", probe, str(first), str(n)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last, failures = first, []
        for line in iter(lambda: _line(process), ""):
            if line.startswith("case "):
                last = int(line.split()[1])
            else:
                failures.append(line.strip().replace("\\n", "\n"))
    if process.returncode:
        failures.append(f"case {last}: the process ended with {process.returncode}")
    return (last + 1 if process.returncode else n), failures


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    timer = Timer(PATIENCE, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def main(probe: str, first: int, n: int) -> None:
    module, name = probe.split(":")
    if sys.platform == "linux":  # macOS refuses a limit below what it has mapped
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    function = getattr(importlib.import_module(module), name)
    for seed in range(first, n):
        print(f"case {seed}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(seed, Path(folder))
            except Exception:
                message = traceback.format_exc().replace("\n", "\\n")
                print(f"failed case {seed}: {message}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
