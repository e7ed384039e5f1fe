"""The rules of style that ruff, mypy and import-linter can't check. Each exception has its reason beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compiled.modules import compiled_modules
from tests.imports import DESCRIBED_WHOLE, LISTED_BY_TESTS, circle, imported_files, is_described, is_imported
from tests.sources import CORE, ROOT, SIZED, dotted, functions, report, sources, tree
from tests.words import (
    doubled_classes,
    needless_decorators,
    needless_prefixes,
    renamed_classes,
)

MAX_FUNCTION_LINES = 70
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")

# The modules that draw random values, for themselves and for others.
RANDOM_SOURCES = frozenset(
    {
        "broker/disks/open_logs.py",
        "programs/format/random_id.py",
        "broker/dispatch/broker.py",
        "broker/dispatch/host.py",
        "commands/client/cluster_client.py",
        "commands/state/users.py",
        "console/serving.py",
    }
)

# What only some modules may call: the prefix of the call, the modules that may, and what the others do instead.
BANNED_CALLS: dict[str, tuple[frozenset[str], str]] = {
    "time": (
        frozenset(
            {"broker/clock.py", "client/blocking.py", "client/clock.py"}
        ),  # the latter for commands that import no event loop
        "take now_ms as an argument, or ask broker.clock",
    ),
    "asyncio.sleep": (frozenset({"client/clock.py"}), "await pause or next_turn of broker.clock"),
    **{
        f"asyncio.{name}": (modules, "a handler may run without a task, see broker/request/eager.py: use broker.clock")
        for name, modules in {
            "timeout": frozenset({"broker/telemetry/posting.py", "programs/run/listening.py"}),
            "wait_for": frozenset({"programs/cluster/supervisor.py"}),
            "TaskGroup": frozenset[str](),
            "current_task": frozenset[str](),
        }.items()
    },
    "datetime.datetime.now": (frozenset(), "take now_ms as an argument, or ask broker.clock"),
    "random": (frozenset(), "take the random value as an argument; the broker draws it"),
    "secrets": (frozenset(), "take the random value as an argument; the broker draws it"),
    "os.urandom": (RANDOM_SOURCES, "take the random value as an argument; the broker draws it"),
    "uuid.uuid4": (frozenset(), "take the random value as an argument; the broker draws it"),
    "open": (frozenset(), "ask the storage.disk.Disk that was passed in"),
    "os.open": (frozenset({"storage/disk.py"}), "ask the storage.disk.Disk that was passed in"),
    "io.open": (frozenset(), "ask the storage.disk.Disk that was passed in"),
    "pathlib.Path.open": (frozenset(), "ask the storage.disk.Disk that was passed in"),
}

# (module, call): why it may.
ALLOWED_CALLS: dict[tuple[str, str], str] = {
    ("broker/config/files.py", "open"): "reads server.properties before there is any storage",
    ("commands/files.py", "open"): "reads what the user names, where there is no storage at all",
    ("commands/files.py", "os.open"): "creates the profiles file, which only its user may read",
    ("cli/exits.py", "os.open"): "the null device, for what is printed after the reader has gone",
    (
        "broker/security/named_files.py",
        "os.open",
    ): "reads what options of commands name, too, where there is no storage",
    ("broker/logging.py", "time"): "a log line has the time at which it is written",
    ("broker/disks/lock.py", "os.open"): "the lock file stands for the process and has no content",
}

# A partition's log is behind one door. What else may be named `.log` in the broker, and what that is.
DOOR = "broker/replica/"
OTHER_LOGS: dict[str, str] = {
    "broker/disks/cleaner.py": "a log of storage that is cleaned, which need not be led, or served",
}

# Where `Any` may be named: values are of no one type until the codec has given them one.
ANY_ALLOWED = frozenset({"protocol/codec.py", "protocol/schema.py"})
# Inside these it says nothing about a value: what a coroutine sends, and a table from types to what handles them.
ANY_MEANS_NOTHING = frozenset({"Coroutine", "Generator", "Callable"})

# Modules that nothing imports: why they are there.
ROOT_MODULES: dict[str, str] = {
    "broker/disks/cleaner_process.py": "python -m broker.disks.cleaner_process, as cleaner_client.py starts it",
    "odradek/__main__.py": "python -m odradek",
    "odradek/pytest_plugin.py": "pytest finds it by its entry point",
}
MISSING = ("ImportError", "ModuleNotFoundError")
DECIDES_NOTHING: dict[str, str] = {
    "coordinator/engine/machine.py": "the protocol of all machines",
}
HANDLER_HEADER = re.compile(r"^([A-Z]\w+) \((\d+)\): \S")


def names_of_imports(module: ast.Module) -> dict[str, str]:
    """Returns local name → the imported name, so that `from time import monotonic as m` is also found."""
    names: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def calls(path: str) -> Iterator[tuple[int, str]]:
    """Returns (line, full name) of each call, and of each other use of an imported module's function, in a file."""
    names = names_of_imports(tree(path))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and (name := dotted(node.func)):
            head, _, rest = name.partition(".")
            full = names.get(head, head)
            yield node.lineno, f"{full}.{rest}" if rest else full


def is_banned(name: str, ban: str) -> bool:
    return name == ban or name.startswith(f"{ban}.")


def banned_uses() -> Iterator[str]:
    for path, _ in sources(*CORE):
        for line, name in calls(path):
            for ban, (modules, instead) in BANNED_CALLS.items():
                if not is_banned(name, ban) or path in modules or (path, ban) in ALLOWED_CALLS:
                    continue
                yield f"{path}:{line}: {name}: {instead}"


def test_a_banned_call_stays_in_its_module() -> None:
    report(banned_uses())


def allowed_calls() -> Iterator[tuple[str, str]]:
    """Yields (module, call) of every call that only certain modules may make."""
    yield from ((path, ban) for ban, (modules, _) in BANNED_CALLS.items() for path in sorted(modules))
    yield from ALLOWED_CALLS


def test_an_allowed_call_is_made() -> None:
    report(
        f"{path}: {ban}: is allowed here, and not called"
        for path, ban in allowed_calls()
        if not any(is_banned(name, ban) for _, name in calls(path))
    )


def uses_of_log(path: str) -> list[int]:
    return [node.lineno for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute) and node.attr == "log"]


def test_a_partition_is_the_only_door_to_its_log() -> None:
    report(
        f"{path}:{line}: .log: ask the Partition, which knows what is committed"
        for path, _ in sources("broker")
        if not path.startswith(DOOR) and path not in OTHER_LOGS
        for line in uses_of_log(path)
    )
    report(f"{path}: .log: is allowed here, and not named" for path in OTHER_LOGS if not uses_of_log(path))


def uses_of_any(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in ANY_MEANS_NOTHING:
        return
    if isinstance(node, ast.Name) and node.id == "Any":
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from uses_of_any(child)


def meaningless_any() -> set[str]:
    """Returns the types in ANY_MEANS_NOTHING that are used with `Any`."""
    return {
        node.value.id
        for path, _ in sources(*CORE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(node.slice))
    }


def test_files_do_not_import_each_other_in_a_circle() -> None:
    imports = {path: imported_files(path) for path, _ in sources(*SIZED)}
    assert not circle(imports), "each is imported by the next, if only for a type: hand them what they need"


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": set()}
    assert sorted(set(circle(imports))) == ["b", "c"]
    assert not circle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def lazy_blocks(module: ast.Module) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yields, for each `if TYPE_CHECKING: … else: …`, the imports of the first part by local name, and the modules that
    the second part imports at their first use."""
    for node in module.body:
        if isinstance(node, ast.If) and node.orelse and dotted(node.test) == "TYPE_CHECKING":
            yield names_of_imports(ast.Module(node.body, [])), dict(map(lazy_module, node.orelse))


def lazy_module(statement: ast.stmt) -> tuple[str, str]:
    match statement:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Name("lazy"), [ast.Constant(str(module))])):
            return name, module
    return ast.unparse(statement), "is not NAME = lazy(MODULE)"


def lazy_faults(module: ast.Module) -> Iterator[str]:
    for imports, modules in lazy_blocks(module):
        for name, target in modules.items():
            if imports.get(name) != target:
                yield f"{name}: {target} at run time, {imports.get(name)} for mypy and import-linter"


def test_a_lazy_module_is_the_module_that_tools_see() -> None:
    report(f"{path}: {fault}" for path, _ in sources(*CORE) for fault in lazy_faults(tree(path)))


@pytest.mark.parametrize(
    ("imported", "statement"),
    [
        ("from a import b", "b = lazy('a.c')"),
        ("from a import c", "b = lazy('a.b')"),
        ("import a", "b = lazy('a')"),
        ("import a", "a = __import__('a')"),
    ],
)
def test_a_lazy_module_that_tools_do_not_see_is_found(imported: str, statement: str) -> None:
    assert list(lazy_faults(ast.parse(f"if TYPE_CHECKING:\n    {imported}\nelse:\n    {statement}")))


def imports_in_functions(module: ast.Module) -> Iterator[int]:
    """Yields the lines of imports inside functions, except imports of packages that may be missing."""
    optional = {
        id(statement)
        for attempt in ast.walk(module)
        if isinstance(attempt, ast.Try)
        and any(dotted(handler.type or ast.Name("")) in MISSING for handler in attempt.handlers)
        for statement in attempt.body
    }
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in optional:
                    yield node.lineno


def test_a_function_imports_only_what_may_be_missing() -> None:
    """`cli` can't import protocol.lazy: it has only the standard library. Nor can compiled modules
    (tests/compiled/test_rules.py)."""
    report(
        f"{path}:{line}: import it at the top, or at its first use (protocol/lazy.py)"
        for path, _ in sources(*CORE, "pipeline")
        if not path.startswith("cli/") and path not in compiled_modules()
        for line in imports_in_functions(tree(path))
    )


def test_an_import_in_a_function_is_found() -> None:
    assert list(imports_in_functions(ast.parse("def f():\n import a"))) == [2]
    assert not list(imports_in_functions(ast.parse("def f():\n try:\n  import a\n except ImportError: pass")))


def test_any_stops_at_the_codec() -> None:
    report(
        f"{path}:{line}: Any: name the type"
        for path, _ in sources(*CORE)
        if path not in ANY_ALLOWED
        for line in uses_of_any(tree(path))
    )
    report(f"{path}: Any: is allowed here, and not named" for path in ANY_ALLOWED if not any(uses_of_any(tree(path))))
    report(f"{name}: never takes an Any" for name in ANY_MEANS_NOTHING - meaningless_any())


def test_a_function_fits_on_a_page() -> None:
    report(
        f"{path}:{function.lineno}: {function.name} has {count} lines, {MAX_FUNCTION_LINES} are the limit"
        for path, _ in sources(*SIZED)
        for function in functions(path)
        if (count := (function.end_lineno or function.lineno) - function.lineno + 1) > MAX_FUNCTION_LINES
    )


def test_nothing_is_left_for_later() -> None:
    report(
        f"{path}:{number}: {line.strip()}"
        for path, text in sources(*CORE, "odradek", "bench", "pipeline")
        for number, line in enumerate(text.splitlines(), 1)
        if MARKS.search(line)
    )


def test_a_class_has_its_name_for_itself() -> None:
    report(doubled_classes())


def test_a_class_is_imported_under_its_own_name() -> None:
    report(renamed_classes())


def test_an_allowance_of_words_is_needed() -> None:
    report(f"{name}: decorates no class" for name in needless_decorators())
    report(f"{prefix}: no class of these is imported under another name" for prefix in needless_prefixes())


def handler_modules() -> list[str]:
    return [
        path
        for path, _ in sources("broker")
        if path.startswith("broker/handlers/") and not Path(path).name.startswith("_") and path.count("/") == 2
    ]


@pytest.mark.parametrize("path", handler_modules())
def test_a_handler_opens_with_its_api(path: str) -> None:
    docstrings = [ast.get_docstring(node) or "" for node in (tree(path), *functions(path))]
    headers = [match for text in docstrings if (match := HANDLER_HEADER.match(text))]
    assert headers, f"{path}: no docstring of the form `Name (key): what it does`"
    name = headers[0][1]
    assert re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() == Path(path).stem, f"{path}: its docstring is about {name}"


def test_every_module_is_imported_by_another() -> None:
    report(
        f"{path}: nothing imports it"
        for path, _ in sources(*CORE, "odradek")
        if path not in ROOT_MODULES and not is_imported(path) and not is_described(path)
    )
    report(f"{path}: may be without an importer, and has one" for path in ROOT_MODULES if is_imported(path))


def test_a_folder_is_described_whole_where_the_product_needs_less() -> None:
    unneeded = [path for path, _ in sources("protocol") if not is_imported(path)]
    report(
        f"{folder}: the product imports all of it"
        for folder in (DESCRIBED_WHOLE, *LISTED_BY_TESTS)
        if not any(path.startswith(folder) for path in unneeded)
    )


def decisions(path: str) -> list[str]:
    """Returns the names of the public functions of a file that return a controller's decision or a machine's result."""
    return [
        function.name
        for function in functions(path)
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        if re.match(r"(Cluster)?Result\b", ast.unparse(function.returns or ast.Constant(None)))
    ]


def test_a_decision_has_its_tests_at_the_same_path() -> None:
    deciding = [path for path, _ in sources("coordinator") if decisions(path) and path not in DECIDES_NOTHING]
    for path in deciding:
        folder, name = (ROOT / "tests" / path).parent, Path(path).name
        assert list(folder.glob("test_*.py")), f"{path}: there are no tests in {folder}"
        if path.startswith("coordinator/cluster/"):
            assert (folder / f"test_{name}").exists(), f"{path}: its tests belong to {folder}/test_{name}"
    report(f"{path}: decides nothing, and needs no allowance" for path in DECIDES_NOTHING if not decisions(path))


def test_an_allowance_is_for_a_module_that_is_there() -> None:
    allowed = {*ROOT_MODULES, *OTHER_LOGS, *ANY_ALLOWED, *(path for path, _ in allowed_calls())}
    report(f"{path}: allowed a thing, but gone" for path in sorted(allowed) if not (ROOT / path).exists())
