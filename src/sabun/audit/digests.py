"""A digest of what a module does: of its code, without docstrings, comments and blank lines.

It is a digest of text, never of a parsed tree, so every Python prints the same one. The tags of proofs count
(`# proof: tag`): a tag that moves is a change. Proofs are tied to their modules by it, figures to the modules they measure.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import re
import tokenize
from pathlib import Path

__all__ = ["TAG", "code_lines", "digest"]

TAG = re.compile(r"# proof: ([a-z0-9-]+)")


def digest(module: Path, span: tuple[int, int] | None = None) -> str:
    """Digest of a module, or of its lines from first to last."""
    first, last = span or (1, float("inf"))
    text = "\n".join(line for number, line in sorted(code_lines(module).items()) if first <= number <= last)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def code_lines(module: Path) -> dict[int, str]:
    """The lines of code by their number."""
    return _code_of(module.read_text(encoding="utf-8"))


@functools.cache
def _code_of(text: str) -> dict[int, str]:
    """The lines of code by their number: no docstrings, no comments but tags, no blank lines outside strings."""
    lines = dict(enumerate(text.splitlines(), start=1))
    written: dict[int, bool] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            tags = " ".join(f"# proof: {tag}" for tag in TAG.findall(token.string)) if written.get(row) else ""
            lines[row] = f"{lines[row][:column].rstrip()}  {tags}".rstrip()
        blank = token.type in {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}
        for line in range(row, token.end[0] + 1):
            written[line] = written.get(line, False) or not blank
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            written |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), False)
    return {number: line for number, line in lines.items() if written.get(number)}
