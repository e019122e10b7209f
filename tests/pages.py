"""Run the examples of a page of documentation, and compare what they print with the page.

A ```text block directly after a ```python block is what that prints. In a ```console block, the
lines after a `$ auxhash` line, up to the next `$`, are what that prints. `...` stands for any text.
Without such lines an example only has to run, and so it does where it shows what is found in texts
that change, and the texts of this machine are others. `$ auxhash serve ... &` starts a service,
which the examples after it find at http://localhost:8000 and which ends with the page.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from io import StringIO
from itertools import zip_longest
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.experiments.datasets import debian, wordnet
from auxhash.experiments.datasets.embedded import VERSION
from auxhash.experiments.datasets.fetch import cache
from auxhash.experiments.datasets.fetch.sources import Collection

# Progress of training, which is said of what takes longer than ten seconds on this machine.
PROGRESS = re.compile(r"^.*; \d+:\d\d:\d\d taken.*\n", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
SERVED = "http://localhost:8000"


class Embedded(NamedTuple):
    """A data set of texts, whose vectors take minutes, and the sum of the texts that pages show."""

    name: str
    texts: Collection
    shown: str


WORDNET = Embedded("wordnet-minilm-small", wordnet.FILES, wordnet.TEXTS_SUM)
DEBIAN = Embedded(
    "debian-minilm-small",
    debian.FILES,
    "d9dcfdc50b5ce34179c9d0672d5928af05b0d3aa2fb1fb6ba174af49461a207b",
)


def need(data: Embedded) -> bool:
    """Skip the test if the vectors are not in the cache; else say if the pages show its texts."""
    if data.texts.present():
        texts_sum = data.shown if data == WORDNET else debian.passages()[1]
        kinds = (f"{kind}-{VERSION}-{texts_sum[:12]}.npy" for kind in ("passages", "questions"))
        if all((cache.folder() / data.name / vectors).exists() for vectors in kinds):
            return texts_sum == data.shown
    pytest.skip(f"{data.name} is not in the cache")


def examples(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind ("python" or "auxhash"), code or command, and the printed output that stands there."""
    blocks = list(CODE_BLOCK.finditer(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        kind, code = block.groups()
        if kind == "python":
            after = following is not None and following[1] == "text"
            directly = after and not text[block.end() : following.start()].strip()
            yield kind, code, following[2] if directly else ""
        elif kind == "console":
            for command in re.split(r"^\$ ", code.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
                line, _, printed = command.partition("\n")
                if line.startswith("auxhash "):
                    yield "auxhash", line, printed


def prints(text: str) -> bool:
    """Tell whether the page shows the output of any example."""
    return any(printed for _, _, printed in examples(text))


def run(text: str, name: str, compared: bool = True) -> None:
    """Run all examples of a page in one namespace; raise AssertionError where output differs."""
    for code, printed, output in outputs(text, name):
        check(code, printed if compared else "", output)


def check(code: str, printed: str, output: str) -> None:
    """Raise AssertionError where an example prints something else than what the page shows."""
    same = OutputChecker().check_output(printed, PROGRESS.sub("", output), ELLIPSIS)
    assert same or not printed, f"{code}\nshould print\n{printed}\nbut prints\n{output}"


def outputs(text: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Each example, the output that stands on the page, and what it prints."""
    names: dict[str, object] = {"__name__": name}
    url = SERVED
    with ExitStack() as services:
        for kind, code, printed in examples(text):
            words = shlex.split(code, comments=True)[1:] if kind == "auxhash" else []
            if kind == "python":
                with redirect_stdout(StringIO()) as out:
                    exec(compile(code.replace(SERVED, url), name, "exec"), names)
                yield code, printed, out.getvalue()
            elif words[-1:] == ["&"]:
                from tests.serve.asking import serving

                url, _ = services.enter_context(serving(*words[1:-1]))
                yield code, printed, f"{url}/ (Ctrl-C stops it)\n"
            else:
                result = CliRunner().invoke(main, words)
                assert result.exit_code == 0, f"{code}\n{result.output}"
                yield code, printed, result.output
