"""Rules for the names of classes: each class has a unique name, and is imported under it. Words: docs/glossary.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.sources import CORE, SIZED, sources, tree

# What makes a part of Kafka's messages of a class: such a class has Kafka's name, within its message's module.
SCHEMA_DECORATORS = frozenset({"message", "struct", "part"})
KAFKA_NAMED = ("protocol.messages.",)
# What these have is never in one process with the rest: a user's `Broker` is what it is called, too.
OF_OTHER_PROCESSES = ("tests/", "odradek/testing/")


def every_path() -> Iterator[str]:
    return (path for path, _ in sources(*SIZED))


def decorators(node: ast.ClassDef) -> set[str]:
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {one.id for one in called if isinstance(one, ast.Name)}


def needless_decorators() -> Iterator[str]:
    """Yields the entries of SCHEMA_DECORATORS that decorate no class."""
    nodes = (node for path, _ in sources(*CORE) for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))
    yield from SCHEMA_DECORATORS.difference(*map(decorators, nodes))


def doubled_classes() -> Iterator[str]:
    """Yields the names that several classes outside of tests have, because such classes could be confused."""
    homes: dict[str, list[str]] = {}
    for path in every_path():
        for node in tree(path).body:
            if (
                isinstance(node, ast.ClassDef)
                and not decorators(node) & SCHEMA_DECORATORS
                and not path.startswith(OF_OTHER_PROCESSES)
            ):
                homes.setdefault(node.name, []).append(path)
    return (f"{name}: in {' and '.join(paths)}" for name, paths in sorted(homes.items()) if len(paths) > 1)


def renamed_imports() -> Iterator[tuple[str, str, ast.alias]]:
    """Yields (place, module, names) of the imports that give one of our classes another name."""
    for path in every_path():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith((*CORE, "bench", "pipeline")):
                for alias in node.names:
                    is_a_class = alias.name[0].isupper() and not alias.name.isupper()
                    if is_a_class and alias.asname not in (None, alias.name):
                        yield f"{path}:{node.lineno}", node.module or "", alias


def renamed_classes() -> Iterator[str]:
    """Yields the imports that give a class another name, except for parts of a message."""
    return (
        f"{place}: {alias.name} as {alias.asname}: one of two things needs another name"
        for place, module, alias in renamed_imports()
        if not module.startswith(KAFKA_NAMED)
    )


def needless_prefixes() -> Iterator[str]:
    """Yields the entries of KAFKA_NAMED whose modules have no class that is imported under another name."""
    modules = [module for _, module, _ in renamed_imports()]
    return (prefix for prefix in KAFKA_NAMED if not any(module.startswith(prefix) for module in modules))
