"""Lists the decisions of the machines in the sources, so that a test of all decisions finds a new one."""

from __future__ import annotations

import ast

from tests.sources import ROOT, tree


def decisions(package: str) -> set[str]:
    """Returns the functions of a package that take a ticket and return a result, as "module.function"."""
    found: set[str] = set()
    for file in sorted((ROOT / "coordinator" / package).rglob("*.py")):
        module = ".".join(file.relative_to(ROOT / "coordinator" / package).with_suffix("").parts)
        for node in ast.walk(tree(file.relative_to(ROOT).as_posix())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _decides(node):
                found.add(f"{module}.{node.name}")
    return found


def _decides(node: ast.FunctionDef) -> bool:
    takes_ticket = any(argument.arg == "ticket" for argument in node.args.args)
    return takes_ticket and node.returns is not None and "Result" in ast.unparse(node.returns)
