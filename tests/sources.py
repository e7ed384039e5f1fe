"""Reads the project's own sources for the rules of style."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ("protocol", "client", "storage", "coordinator", "broker", "cli", "programs", "commands", "console")
SIZED = (*CORE, "odradek", "bench", "pipeline", "tests")


@cache
def sources(*packages: str) -> tuple[tuple[str, str], ...]:
    """Returns (path from the root, text) of every Python file of these packages."""
    files = sorted(file for package in packages for file in (ROOT / package).rglob("*.py"))
    return tuple(
        (file.relative_to(ROOT).as_posix(), file.read_text()) for file in files if "node_modules" not in file.parts
    )


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), path)


def functions(path: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return None


def report(faults: Iterator[str]) -> None:
    listed = list(faults)
    assert not listed, "\n" + "\n".join(listed)
