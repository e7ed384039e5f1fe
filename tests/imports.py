"""Finds the imports between the project's own modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

from broker import handlers
from broker.handlers import controller
from cli.table import COMMANDS
from coordinator.cluster.decisions import DECISIONS
from tests.sources import CORE, ROOT, sources, tree

# The protocol is described whole, also what nothing serves yet: there it is enough that tests import a module, or list
# its folder.
DECIDED = {f"coordinator.cluster.{row.module}" for row in DECISIONS.values()}
HANDLED = {*handlers.NAMES, *controller.NAMES}

DESCRIBED_WHOLE = "protocol/"
LISTED_BY_TESTS = ("protocol/messages/",)


def imported_modules(path: str) -> Iterator[str]:
    package = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_files(path: str) -> set[str]:
    """Returns the files of this project that a file imports, including imports for types. A package's __init__ counts
    only if its own names are used."""
    files: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            files.update(filter(None, (file_of(alias.name) for alias in node.names)))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                files.add(file_of(f"{node.module}.{alias.name}") or file_of(node.module) or path)
    return files - {path}


def file_of(module: str) -> str | None:
    path = module.replace(".", "/")
    return next((file for file in (f"{path}.py", f"{path}/__init__.py") if (ROOT / file).exists()), None)


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Returns a cycle of files, each of which imports the next; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        row: list[str] = error.args[1]
        return row
    return []


@cache
def importers() -> dict[str, set[str]]:
    """Returns the modules that each file of the product imports."""
    return {path: set(imported_modules(path)) for path, _ in sources(*CORE, "odradek", "bench", "pipeline")}


@cache
def imported_by_tests() -> set[str]:
    return {name for path, _ in sources("tests") for name in imported_modules(path)}


def module_of(path: str) -> str:
    return path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")


def is_imported(path: str) -> bool:
    """True if another file imports the module or a part of the package, or if a table of handlers, decisions or
    commands names it."""
    module = module_of(path)
    by_others = any(module in names for other, names in importers().items() if other != path)
    by_parts = path.endswith("/__init__.py") and any(
        name.startswith(f"{module}.") for names in (*importers().values(), imported_by_tests()) for name in names
    )
    by_table = path.startswith("broker/handlers/") and module_of(path).removeprefix("broker.handlers.") in HANDLED
    by_word = any(module in (command.module, command.program) for command in COMMANDS.values())
    by_decision = module in DECIDED
    return by_others or by_parts or by_table or by_word or by_decision


def is_described(path: str) -> bool:
    """True for a module of the protocol that tests import, or whose folder the tests list."""
    is_tested = module_of(path) in imported_by_tests() or path.startswith(LISTED_BY_TESTS)
    return path.startswith(DESCRIBED_WHOLE) and is_tested
