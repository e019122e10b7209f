"""Names and first lines: a docstring stands alone in an editor, a name says what the thing is."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKED = ("src/auxhash", "tests", "benchmarks", "docs", "examples")
# A first line begins with a verb or names the thing.
OPENINGS = (
    *("What ", "Whether ", "The same", "Those ", "As ", "That "),
    *("Where ", "How ", "Who ", "Which ", "All that "),
)
VAGUE = {"told", "held", "given", "found", "whole"}
PUBLIC = {("src/auxhash/serve", "found")}  # a field of the limits is an option of the command
FIELD = {("held", "out")}  # the field's word for points that are not learnt from
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    """Return the trees of all scripts, and those of the documentation's code."""
    paths = sorted(path for folder in CHECKED for path in (ROOT / folder).rglob("*.py"))
    texts = [(path, path.read_text("utf-8")) for path in paths]
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        texts += [(path, code) for code in PYTHON.findall(path.read_text("utf-8"))]
    return [(path.relative_to(ROOT), ast.parse(text)) for path, text in texts]


def nodes(kinds: tuple[type, ...]) -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield path, node


def defined(node: ast.AST) -> str:
    """The name that a node binds, without underscores around it; empty if none."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name.strip("_")
        case ast.Attribute(attr=name, ctx=ast.Store()):
            return name.strip("_")
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name.strip("_")
    return ""


def test_first_lines_begin_with_a_verb_or_the_thing():
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = [
        f"{path}:{getattr(node, 'lineno', 1)}"
        for path, node in nodes(documented)
        if (ast.get_docstring(node) or "").startswith(OPENINGS)
    ]
    assert wrong == []


def vague(name: str) -> set[str]:
    """Return the words of a name, between underscores and capitals, that have several meanings.

    The name of a test is a sentence, which says what it means.
    """
    if name.startswith("test_"):
        return set()
    words = [word.lower() for word in WORD.findall(name)]
    return {
        word
        for word, after in pairwise([*words, ""])
        if word in VAGUE and (word, after) not in FIELD
    }


def test_no_name_has_several_meanings():
    kinds = (ast.Name, ast.Attribute, ast.arg, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = {
        f"{path}: {name}"
        for path, node in nodes(kinds)
        if vague(name := defined(node)) and (path.parent.as_posix(), name) not in PUBLIC
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("told = 1", "told"),
        ("def _held(): pass", "held"),
        ("self._found = 1", "found"),
        ("MAX_WHOLE = 1", "MAX_WHOLE"),
        ("class GivenPairs: pass", "GivenPairs"),
        ("def share(n_found): pass", "n_found"),
        ("held_in, held_out = 1, 2", "held_in"),
    ],
)
def test_it_would_be_seen(text, name):
    names = {defined(node) for node in ast.walk(ast.parse(text))}
    assert {name for name in names if vague(name)} == {name}


def test_words_of_the_field_and_sentences_are_allowed():
    for name in (
        "held_out",
        "n_held_out",
        "HeldOut",
        "MIN_HELD_OUT",
        "test_all_is_found",
        "foundry",
    ):
        assert not vague(name)
