"""The words that a name, a docstring and an import may not have, each with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.sources import CORE, SIZED, functions, sources, tree

# Names that say nothing, and what says something. A reader greps for the field's word, and finds none of these.
EMPTY_NAMES: dict[str, str] = {
    "found": "what a lookup gave is an entry, a topic, an offset: say which",
    "each": "an item of a loop is a batch, a member, a path: say which",
    "known": "say what is known: the latest epoch, registered brokers, the remembered producer",
    "asked": "what a request names is a requested offset, a resource, a query: say which",
    "wanted": "say what is to be had: the target state, the requested partition, the expected value",
    "said": "say what was said: the reported version, the advertised address",
    "told": "advertised, reported, notified or logged? It meant all of them",
    "kept": "say what stays: other records, retained batches, the cache",
    "form": "a layout, an encoding, a serde, a shape: say which",
    "lapse": "a lock, a session or a timer expires: say which",
    "learning": "reading, loading, scanning: say what is learnt from where",
    "asking": "the field has requests, queries and polls",
}
EMPTY_CLASS_NAMES: dict[str, str] = {
    "Finder": "say what it finds",
    "Heard": "a heartbeat, a vote, a report: say which",
    "Seat": "a coordinator's place among the others: say whose",
    "Wish": "what is proposed, requested or desired: say what",
    "Work": "say what is done",
    "World": "the state, the image, the environment of what",
}
EMPTY_FUNCTION_NAMES: dict[str, str] = {"refused": "say what is answered, or which error is returned"}
# "What a member owns" names nothing either: "The partitions that a member owns", "Returns…", "True when…".
EMPTY_OPENING = "What "
# What makes a part of Kafka's messages of a class: such a class has Kafka's name, within its message's module.
SCHEMA_DECORATORS = frozenset({"message", "struct", "part"})
KAFKA_NAMED = ("protocol.messages.",)
# What these have is never in one process with the rest: a user's `Broker` is what it is called, too.
OF_OTHER_PROCESSES = ("tests/", "odradek/testing/")


def every_path() -> Iterator[str]:
    return (path for path, _ in sources(*SIZED))


def names(path: str) -> Iterator[tuple[int, str]]:
    """Yields (line, name) of everything that a file names, not of what it only uses."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def empty_names() -> Iterator[str]:
    """Yields where a thing has a name that says nothing, with what would say something."""
    yield from (
        f"{path}:{line}: {name}: {EMPTY_NAMES[name.strip('_')]}"
        for path in every_path()
        for line, name in names(path)
        if name.strip("_") in EMPTY_NAMES
    )
    yield from (
        f"{path}:{node.lineno}: {node.name}: {EMPTY_CLASS_NAMES[node.name.strip('_')]}"
        for path in every_path()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.name.strip("_") in EMPTY_CLASS_NAMES
    )
    yield from (
        f"{path}:{function.lineno}: {function.name}: {EMPTY_FUNCTION_NAMES[function.name]}"
        for path in every_path()
        for function in functions(path)
        if function.name in EMPTY_FUNCTION_NAMES
    )


def empty_openings() -> Iterator[str]:
    """Yields the docstrings that begin with no subject."""
    return (
        f"{path}:{node.lineno}: {text.splitlines()[0]}: say what that is, or begin with Returns, Raises, True when"
        for path in every_path()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(text := node.value.value, str)
        and text.startswith(EMPTY_OPENING)
    )


def decorators(node: ast.ClassDef) -> set[str]:
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {one.id for one in called if isinstance(one, ast.Name)}


def needless_decorators() -> Iterator[str]:
    """Yields those of SCHEMA_DECORATORS that decorate no class."""
    nodes = (node for path, _ in sources(*CORE) for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))
    yield from SCHEMA_DECORATORS.difference(*map(decorators, nodes))


def doubled_classes() -> Iterator[str]:
    """Yields the names that several classes have, of modules that are no tests: one has to be told from the other."""
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
    """Yields (place, module, names) of the imports that give a class of ours another name."""
    for path in every_path():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith((*CORE, "bench", "pipeline")):
                for alias in node.names:
                    is_a_class = alias.name[0].isupper() and not alias.name.isupper()
                    if is_a_class and alias.asname not in (None, alias.name):
                        yield f"{path}:{node.lineno}", node.module or "", alias


def renamed_classes() -> Iterator[str]:
    """Yields the imports that give a class another name, without those of a message's part."""
    return (
        f"{place}: {alias.name} as {alias.asname}: one of two things needs another name"
        for place, module, alias in renamed_imports()
        if not module.startswith(KAFKA_NAMED)
    )


def needless_prefixes() -> Iterator[str]:
    """Yields those of KAFKA_NAMED of whose modules no class is imported under another name."""
    modules = [module for _, module, _ in renamed_imports()]
    return (prefix for prefix in KAFKA_NAMED if not any(module.startswith(prefix) for module in modules))
