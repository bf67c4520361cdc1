"""The prose in files: pages and notebooks; strings and comments of Python and JavaScript; visible text of HTML."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

CODE = {
    "STYLE": "CSS",
    "_CSS": "CSS",
    "_JS": "JavaScript",
    "SCRIPT": "Python",
    "EXAMPLE": "Python",
    "FORMER": "former links",
}
"""Constants that are not prose."""


def read_page(path: Path) -> str:
    """Return the Markdown of a page, or of a notebook's cells."""
    text = path.read_text(encoding="utf-8")
    return "\n\n".join(_list_cells(text, "markdown")) if path.suffix == ".ipynb" else text


def _list_cells(content: str, kind: str) -> list[str]:
    cells = json.loads(content)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def list_strings(path: Path) -> list[tuple[str, str]]:
    """List the texts of a file that have a space and a letter, each with its place."""
    content = path.read_text(encoding="utf-8")
    texts = {".py": _read_python, ".js": _read_script, ".html": _read_page, ".ipynb": _read_notebook}[path.suffix](
        content
    )
    return [(f"{path.name}:{line}", _strip_code(text)) for line, text in texts if re.search(r"[a-z]\w*\W* ", text)]


PARAMETER = re.compile(r"^( *)\w+(?:, \w+)*\n(?=\1 {4}\S)", re.MULTILINE)
"""A name, or several, above its meaning: a line of a numpydoc section."""


def _strip_code(text: str) -> str:
    text = PARAMETER.sub("\n", text)
    return re.sub(r"``.*?``|`[^`]*`", "", text, flags=re.DOTALL)


def _read_python(content: str) -> Iterator[tuple[int, str]]:
    yield from _walk(ast.parse(content))
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _read_notebook(content: str) -> Iterator[tuple[int, str]]:
    """Of the code only, lines counted over all cells; commands of Jupyter such as ``%%writefile`` are left out."""
    cells = "\n".join(_list_cells(content, "code"))
    yield from _read_python(re.sub(r"^[%!].*", "", cells, flags=re.MULTILINE))


def _walk(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id in CODE for to in node.targets):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        yield node.lineno, "".join(map(str, parts))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _walk(part.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _read_script(content: str) -> Iterator[tuple[int, str]]:
    for hit in re.finditer(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", content, re.DOTALL):
        yield content.count("\n", 0, hit.start()) + 1, hit[0]


def _read_page(content: str) -> Iterator[tuple[int, str]]:
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{\w+\}", "…", content)
    for hit in re.finditer(
        r">([^<>]+)<|<!--(.*?)-->|\b(?:title|alt|aria-label|placeholder)=\"([^\"]*)\"", plain, re.DOTALL
    ):
        yield plain.count("\n", 0, hit.start()) + 1, next(text for text in hit.groups() if text is not None)
