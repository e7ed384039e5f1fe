"""Tests the differences between compiled code and Python that docs/compiled.md lists."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import hatch_build
from tests.sources import ROOT

HERE = ROOT / "tests" / "compiled"
SOURCE = HERE / "differences.py"
DEEP = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("differences", sys.argv[1])
module = module_from_spec(spec)
spec.loader.exec_module(module)
try:
    module.deep(1_000_000)
except RecursionError:
    print("RecursionError")
"""

# Function of differences.py: what it comes to in Python, and compiled.
DIFFERENCES: dict[str, tuple[object, object]] = {
    "name_of_two_handlers": ("Second", TypeError),
    "bool_as_int": (True, 1),
    "enum_as_int": ("Code", "int"),
    "int_as_float": (1, 1.0),
    "named_tuple_as_tuple": ("Pair", "tuple"),
    "annotation_that_is_not_true": ("text", TypeError),
    "product_beyond_64_bits": (1 << 64, 0),
    "replaced_function": ("replacement", "original"),
    "replaced_constant": (2, 1),
    "attribute_of_a_class": (2, 1),
    "new_attribute": ("red", AttributeError),
    "subclass_that_is_not_compiled": ("Subclass", TypeError),
    "local_after_its_last_use": ("there", "gone"),
    "module_of_an_asynchronous_function": ("differences", None),
}


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles differences.py in the same way as the wheel's modules."""
    target = tmp_path_factory.mktemp("compiled")
    assert hatch_build.compiled(HERE, target, [SOURCE.name]) is None
    return next(target.glob("differences*.so"))


def load(file: Path) -> ModuleType:
    """Returns the module with its replacements."""
    spec = spec_from_file_location("differences", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.replaced = lambda: "replacement"  # type: ignore[attr-defined]
    module.LIMIT = 2  # type: ignore[attr-defined]
    return module


def outcome(function: Callable[[], object]) -> object:
    try:
        return function()
    except Exception as error:
        return type(error)


def test_compiled_code_differs_in_what_is_listed(extension: Path) -> None:
    source, compiled = load(SOURCE), load(extension)
    outcomes = {
        name: tuple((type(value), value) for value in (outcome(getattr(module, name)) for module in (source, compiled)))
        for name in DIFFERENCES
    }
    assert outcomes == {name: tuple((type(value), value) for value in both) for name, both in DIFFERENCES.items()}


def test_compiled_code_has_no_limit_of_recursion(extension: Path) -> None:
    ended = [
        subprocess.run([sys.executable, "-c", DEEP, str(file)], capture_output=True, text=True, check=False)
        for file in (SOURCE, extension)
    ]
    assert [(run.returncode, run.stdout.strip()) for run in ended] == [(0, "RecursionError"), (-signal.SIGSEGV, "")]


def test_every_difference_is_on_the_page() -> None:
    page = (ROOT / "docs" / "compiled.md").read_text()
    assert [name for name in (*DIFFERENCES, "deep") if f"`{name}`" not in page] == []
