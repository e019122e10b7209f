"""The code of every page of the documentation runs, and prints what stands there."""

import hashlib
from pathlib import Path

import pytest

from auxhash.experiments.datasets import debian
from auxhash.experiments.datasets.fetch import cache
from tests import pages
from tests.conftest import refine_briefly

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
# Data sets that take minutes to make, by the page that shows what is found in them.
EMBEDDED = {"datasets": pages.WORDNET, "embeddings": pages.DEBIAN}


def with_examples():
    return [page for page in PAGES if any(True for _ in pages.examples(page.read_text("utf-8")))]


@pytest.mark.parametrize("page", with_examples(), ids=lambda page: page.stem)
def test_examples_run_and_print_what_stands_there(page, tmp_path, monkeypatch):
    if page.stem == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    compared = pages.need(EMBEDDED[page.stem]) if page.stem in EMBEDDED else True
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    if not pages.prints(text):  # what is printed is printed in full training, too
        refine_briefly(monkeypatch)
    pages.run(text, page.stem, compared)


PAGE = """
```python
print("a", 1 + 1)
```

```text
a 2
```

```python
print(object())
```

Words between: no output.

```text
not compared
```

```console
$ auxhash data list
... digits ...
```
"""


def test_output_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [printed for _, _, printed in pages.examples(PAGE)] == ["a 2\n", "", "... digits ...\n"]
    pages.run(PAGE, "page")
    for right, wrong in (("a 2", "a 3"), ("... digits ...", "... dogs ...")):
        with pytest.raises(AssertionError, match="but prints"):
            pages.run(PAGE.replace(right, wrong), "page")
    slowly = "refining 10 of 13 L(h) 609695; 0:00:10 taken, about 0:00:02 left in all\n"
    pages.check("", "a 2\n", slowly + "a 2\n")
    with pytest.raises(AssertionError, match="but prints"):
        pages.check("", "a 2\n", "slowly\na 2\n")


def test_output_is_compared_where_it_shows_the_texts_that_are_here(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pytest.skip.Exception, match="is not in the cache"):
        pages.need(pages.DEBIAN)
    (tmp_path / "debian").mkdir()
    (tmp_path / pages.DEBIAN.name).mkdir()
    line = b"a\tB\tThe letter.\n"
    other = hashlib.sha256(line).hexdigest()
    (tmp_path / "debian" / debian.TEXTS).write_bytes(other.encode() + b"\n" + line)
    for kind in ("passages", "questions"):
        with pytest.raises(pytest.skip.Exception, match="is not in the cache"):
            pages.need(pages.DEBIAN)
        (tmp_path / pages.DEBIAN.name / f"{kind}-v1-{other[:12]}.npy").touch()
    compared = pages.need(pages.DEBIAN)
    assert not compared
    assert pages.need(pages.DEBIAN._replace(shown=other))
    pages.run(PAGE.replace("a 2", "a 3"), "page", compared)
