"""Rules for the compiled modules, in which mypyc gives some code another meaning than Python does.

docs/compiled.md lists the differences; differences.py shows each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.compiled.modules import compiled_modules
from tests.imports import file_of
from tests.sources import CORE, ROOT, dotted, functions, report, sources, tree

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Functions of a compiled module that call each other in a circle: why the depth has a limit.
BOUNDED_DEPTH: dict[tuple[str, str], str] = {
    ("storage/segment/segment.py", "Segment._note"): "indexes that are made anew begin with a known timestamp",
    ("client/codec.py", "has_records"): "as deep as messages are declared",
    ("protocol/connection.py", "FrameReader.filled"): "once, when the size of a frame is complete",
    ("broker/share/hosted.py", "Hosted.release"): "the event loop calls `_released`, in a later turn",
}


def bases(path: str) -> Iterator[tuple[ast.ClassDef, str | None, str]]:
    """Yields each class of a file with each of its base classes: the file of the base class, if it is ours, and the
    base's name there."""
    imported: dict[str, tuple[str | None, str]] = {
        alias.asname or alias.name: (file_of(node.module), alias.name)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = dotted(base.value if isinstance(base, ast.Subscript) else base) or ""
                yield (node, *imported.get(name, (path, name)))


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function, without the functions and classes inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            yield from own_nodes(node)


def caught_types(function: ast.AST) -> dict[str, set[str]]:
    """Returns the types of exceptions that a function's handlers bind to each name."""
    types: dict[str, set[str]] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type:
            types.setdefault(node.name, set()).add(ast.unparse(node.type))
    return types


def names_of_two_types(module: ast.Module) -> Iterator[str]:
    for scope in (module, *(node for node in ast.walk(module) if isinstance(node, Function))):
        for name, types in caught_types(scope).items():
            if len(types) > 1:
                where = f"{scope.lineno}: {scope.name}" if isinstance(scope, Function) else "the module"
                yield f"{where}: `as {name}` is {' and '.join(sorted(types))}: one name has one type, that of the first"


def bare_raises(module: ast.Module) -> Iterator[str]:
    """Yields the handlers that wait and then raise the exception in hand without naming it."""
    for handler in ast.walk(module):
        if isinstance(handler, ast.ExceptHandler):
            nodes = list(own_nodes(handler))
            waits = any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in nodes)
            if waits and any(isinstance(node, ast.Raise) and node.exc is None for node in nodes):
                yield f"{handler.lineno}: the handler waits, so `raise` must name the exception"


def called(function: Function, owner: str) -> Iterator[str]:
    """Yields the qualified names of the functions of a module that a method or function of this module may call."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                yield f"{owner}.{name}"


def recursion(module: ast.Module) -> list[str]:
    """Returns functions of a module that call each other in a cycle."""
    calls = {node.name: set(called(node, "")) for node in module.body if isinstance(node, Function)}
    for owner in module.body:
        if isinstance(owner, ast.ClassDef):
            methods = [node for node in owner.body if isinstance(node, Function)]
            calls |= {f"{owner.name}.{method.name}": set(called(method, owner.name)) for method in methods}
    try:
        TopologicalSorter({name: names & calls.keys() for name, names in calls.items()}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_what_is_to_be_compiled_is_there() -> None:
    report(f"pyproject.toml: {path}: compiled, but gone" for path in compiled_modules() if not (ROOT / path).exists())


def test_what_is_compiled_is_subclassed_by_what_is_compiled_alone() -> None:
    compiled = compiled_modules()
    protocols = {(path, node.name) for path in compiled for node, _, name in bases(path) if name == "Protocol"}
    report(
        f"{path}:{node.lineno}: {node.name}: {base} is compiled, and no object of this class can be made: compile it"
        for path, _ in sources(*CORE)
        if path not in compiled
        for node, above, base in bases(path)
        if above in compiled and (above, base) not in protocols
    )


def test_a_name_of_handlers_has_one_type_in_a_function() -> None:
    report(f"{path}:{fault}" for path in compiled_modules() for fault in names_of_two_types(tree(path)))


def test_a_handler_that_awaits_names_what_it_raises() -> None:
    report(f"{path}:{fault}" for path in compiled_modules() for fault in bare_raises(tree(path)))


@pytest.mark.parametrize(("source", "faults"), [
    ("async def f():\n try: g()\n except A:\n  if b: await c\n  raise", 1),
    ("async def f():\n try: g()\n except A as e:\n  await c\n  raise e", 0),
    ("async def f():\n try: await g()\n except A:\n  raise", 0),
])  # fmt: skip
def test_a_handler_that_awaits_and_raises_is_found(source: str, faults: int) -> None:
    assert len(list(bare_raises(ast.parse(source)))) == faults


@pytest.mark.parametrize("source", [
    "def f():\n try: g()\n except A as e: pass\n except B as e: pass",
    "async def f():\n try: g()\n except A as e: pass\n if h:\n  try: g()\n  except (A, B) as e: pass",
    "try: g()\nexcept A as e: pass\nexcept B as e: pass",
])  # fmt: skip
def test_a_name_of_two_types_is_found(source: str) -> None:
    assert list(names_of_two_types(ast.parse(source)))


@pytest.mark.parametrize("source", [
    "def f():\n try: g()\n except A as a: pass\n except B as b: pass",
    "def f():\n try: g()\n except A as e: pass\n def h():\n  try: g()\n  except B as e: pass",
    "def f():\n try: g()\n except A as e: pass\n try: g()\n except A as e: pass\n except B: pass",
])  # fmt: skip
def test_names_of_a_type_each_are_fine(source: str) -> None:
    assert not list(names_of_two_types(ast.parse(source)))


def test_compiled_functions_do_not_call_each_other_in_a_circle() -> None:
    circles = {path: recursion(tree(path)) for path in compiled_modules()}
    report(
        f"{path}: {' → '.join(circle)}: compiled code has no limit of recursion: the process ends by a signal"
        for path, circle in circles.items()
        if circle and not any((path, name) in BOUNDED_DEPTH for name in circle)
    )
    report(f"{path}: {name}: calls itself no more" for path, name in BOUNDED_DEPTH if name not in circles[path])


def test_a_circle_of_calls_is_found() -> None:
    assert recursion(ast.parse("def f(): f()")) == ["f", "f"]
    assert recursion(ast.parse("class A:\n def f(self): self.g()\n def g(self): self.f()"))
    assert not recursion(ast.parse("class A:\n def f(self): f()\ndef f(): g()\ndef g(): pass"))


def test_a_compiled_module_has_no_asynchronous_generator() -> None:
    report(
        f"{path}:{function.lineno}: {function.name}: an asynchronous generator is not compiled"
        for path in compiled_modules()
        for function in functions(path)
        if isinstance(function, ast.AsyncFunctionDef)
        and any(isinstance(node, ast.Yield) for node in own_nodes(function))
    )


def test_a_compiled_constant_is_final() -> None:
    report(
        f"{path}:{node.lineno}: {ast.unparse(target)}: annotate it as Final, and compiled code has it in place"
        for path in compiled_modules()
        for node in tree(path).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    )


def test_a_compiled_module_imports_nothing_lazily() -> None:
    report(
        f"{path}:{node.lineno}: mypyc leaves out the else of TYPE_CHECKING"
        for path in compiled_modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and node.orelse
    )
