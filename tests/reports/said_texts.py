"""The texts that pages say, read from the code and the templates without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jinja2
from jinja2 import nodes

import sabun

SOURCE = Path(sabun.__file__).parent
CODE = [*sorted(SOURCE.rglob("*.py")), Path(__file__).resolve().parents[2] / "tools" / "docs" / "papers.py"]
TEMPLATES = sorted(SOURCE.glob("*/templates/*.html"))


@cache
def said_texts() -> dict[str, str]:
    """Every text that `said`, `phrase` or `count` is called with, and where."""
    found: dict[str, str] = {}
    for file in CODE:
        for name, texts in _calls(ast.parse(file.read_text(encoding="utf-8"))):
            found |= {_key(name, text): file.name for text in texts}
    for file in TEMPLATES:
        for call in _templates(file).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in ("said", "count"):
                [text] = [part.value for part in call.args if isinstance(part, nodes.Const)] or [None]
                if text is not None:
                    found[_key(call.node.name, text)] = file.name
    return found


@cache
def constants() -> set[str]:
    """Every text that stands in the code or in a template, as far as it is written down whole."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in CODE)
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def run_texts(room: str) -> set[str]:
    """Titles, headings, notes and errata of a room's paper, as its code writes them, with a 7 for what a run fills in."""
    files = sorted((SOURCE / room / "reproduction").glob("*.py"))
    tree = ast.parse("\n".join(file.read_text(encoding="utf-8").partition("import annotations")[2] for file in files))
    return {
        text
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MADE
        for part in node.keywords
        if part.arg in ("title", "columns", "note", "errata")
        for text in _written(part.value, tree)
    }


_MADE = ("Table", "Figure", "Reproduction", "drawn")


def _written(node: ast.expr, tree: ast.Module) -> list[str]:
    """What an expression may say; a name or a function is looked up in the room's files; what is not found is a 7."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(_written(part, tree)[0] for part in parts)]
        case ast.FormattedValue(value=part) if not isinstance(part, ast.Constant):
            return _written(part, tree)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(mark)), attr="join")):
            return [f"7{mark}7"]
        case ast.IfExp(body=one, orelse=other):
            return [*_written(one, tree), *_written(other, tree)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [one + other for one in _written(left, tree) for other in _written(right, tree)]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [text for part in parts for text in _written(part, tree)]
        case ast.Starred(value=part):
            return _written(part, tree)
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)):
            return [text for value in _values(name, tree) for text in _written(value, tree)] or ["7"]
    return ["7"]


def _values(name: str, tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None)
        elif isinstance(node, ast.Assign) and any(isinstance(part, ast.Name) and part.id == name for part in node.targets):
            yield node.value


def plain_words() -> list[str]:
    """Words of the templates that are not said: markup's own text, in no language but English."""
    words = []
    for file in TEMPLATES:
        for data in _templates(file).find_all(nodes.TemplateData):
            words += [
                f"{file.name}: {part.strip()}" for part in _outside_tags(data.data) if any(letter.isalpha() for letter in part)
            ]
    return words


def _outside_tags(markup: str) -> list[str]:
    return re.split(r"<!?[^<>]*>|^[^<>]*>|<[^<>]*$|&\w+;", markup)


def _templates(file: Path) -> nodes.Template:
    return jinja2.Environment().parse(file.read_text(encoding="utf-8"))


def _calls(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name, arguments = node.func.id, node.args
        if name in ("said", "phrase"):
            yield name, _texts(arguments[:1])
        elif name == "count" and len(arguments) == 2:
            yield name, _texts(arguments[1:])
        elif (
            name == "map"
            and len(arguments) == 2
            and isinstance(arguments[0], ast.Name)
            and arguments[0].id in ("said", "phrase")
        ):
            yield arguments[0].id, _texts(arguments[1:])


def _texts(arguments: list[ast.expr]) -> list[str]:
    return [
        node.value
        for argument in arguments
        if isinstance(argument, ast.Constant | ast.Tuple)
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _key(name: str, text: str) -> str:
    return f"{{n}} {text}" if name == "count" else text
