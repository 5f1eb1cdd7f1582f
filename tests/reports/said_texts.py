"""The texts that pages say, read from the code and the templates without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
from jinja2 import nodes

import sabun

SOURCE = Path(sabun.__file__).parent
CODE = [*sorted(SOURCE.rglob("*.py")), Path(__file__).resolve().parents[2] / "tools" / "docs" / "papers.py"]
TEMPLATES = SOURCE / "reports" / "templates"


def said_texts() -> dict[str, str]:
    """Every text that `said`, `phrase` or `count` is called with, and where."""
    found: dict[str, str] = {}
    for file in CODE:
        for name, texts in _calls(ast.parse(file.read_text(encoding="utf-8"))):
            found |= {_key(name, text): file.name for text in texts}
    for file in sorted(TEMPLATES.glob("*.html")):
        for call in _templates(file).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in ("said", "count"):
                [text] = [part.value for part in call.args if isinstance(part, nodes.Const)] or [None]
                if text is not None:
                    found[_key(call.node.name, text)] = file.name
    return found


def constants() -> set[str]:
    """Every text that stands in the code or in a template, as far as it is written down whole."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in CODE)
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def plain_words() -> list[str]:
    """Words of the templates that are not said: markup's own text, in no language but English."""
    words = []
    for file in sorted(TEMPLATES.glob("*.html")):
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
