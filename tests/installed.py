"""`--installed`: the tests import Odradek from a wheel of this tree, with its compiled core, and start its command.

pytest loads this module before any conftest, because the first import of a package determines the source of all its
modules. `python -m tests.installed tests.fuzz ARGUMENTS` runs a program of the tests in the same way.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from pathlib import Path

import pytest

from bench import wheel


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--installed",
        action="store_true",
        help="test Odradek as a wheel of this tree installs it, with its compiled core",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if early_config.known_args_namespace.installed:
        folder = Path(wheel.program()).parent
        wheel.keep()
        import_from(folder)


def import_from(folder: Path) -> None:
    """Puts an installed wheel before the source tree on the path of this process and of the Python processes that it
    starts."""
    places = [str(folder / "odradek"), str(folder)]
    sys.path[:0] = places
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    os.environ["PYTHONSAFEPATH"] = "1"  # the working directory, which is the tree, stays off the path
    for name in [name for name in sys.modules if name.split(".")[0] == "odradek"]:
        del sys.modules[name]  # pytest has imported the tree's, by the entry point of the plugin


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that replace parts of compiled modules, because compiled code ignores the replacement."""
    if config.getoption("--installed"):
        left_out = [item for item in items if item.get_closest_marker("source_only")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def main() -> None:
    """Runs the module that the first argument names, with the other arguments."""
    import_from(Path(wheel.program()).parent)
    wheel.keep()
    importlib.import_module("tests.interop.brokers").Odradek.program = wheel.program()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
