"""Names and first lines: a docstring stands alone in an editor, a name says what the thing is."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKED = ("src/auxhash", "tests")
# A first line begins with a verb or names the thing.
OPENINGS = (
    *("What ", "Whether ", "The same", "Those ", "As ", "That "),
    *("Where ", "How ", "Who ", "Which ", "All that "),
)
VAGUE = {"told", "held", "given", "found", "whole"}
PUBLIC = {("src/auxhash/serve", "found")}  # a field of the limits is an option of the command


@cache
def trees() -> dict[Path, ast.Module]:
    paths = sorted(path for folder in CHECKED for path in (ROOT / folder).rglob("*.py"))
    return {path: ast.parse(path.read_text("utf-8")) for path in paths}


def nodes(kinds: tuple[type, ...]) -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in trees().items():
        short = path.relative_to(ROOT)
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield short, node


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


def test_no_name_has_several_meanings():
    kinds = (ast.Name, ast.Attribute, ast.arg, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = {
        f"{path}: {name}"
        for path, node in nodes(kinds)
        if (name := defined(node)) in VAGUE and (path.parent.as_posix(), name) not in PUBLIC
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [("told = 1", "told"), ("def _held(): pass", "held"), ("self._found = 1", "found")],
)
def test_it_would_be_seen(text, name):
    assert name in {defined(node) for node in ast.walk(ast.parse(text))}
