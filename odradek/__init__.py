"""The import name of the wheel, and the `odradek` command. `odradek.testing` has brokers for test suites.

The packages of Odradek import each other as `protocol`, `client`, `storage`, `coordinator`, `broker`, `cli`,
`programs` and `commands`. In a wheel they are folders inside this one, in the source tree they lie beside it. Only
the command puts their parent folder on the path, as the first entry, so that other programs never see those names.
"""

import gc
import os
import sys

INTERRUPTED = 130
"""Ctrl-C (cli.exits)."""

OBJECTS_BEFORE_COLLECTION = 50_000
"""New objects until garbage is collected. A command makes most of its objects by imports, and keeps them: with Python's
700, collections take a tenth of a broker's start."""


def add_packages() -> None:
    """Puts the folder of Odradek's packages first on the path of this process."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.isdir(os.path.join(here, "broker"))
    sys.path.insert(0, here if installed else os.path.dirname(here))


def open_missing_streams() -> None:
    """Opens /dev/null in place of standard streams that the parent process has closed: Python then has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # until the process ends


def main() -> int:
    """Runs the command line. Returns the exit code."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    open_missing_streams()
    add_packages()
    try:
        from cli.main import main as run

        return run()
    except KeyboardInterrupt:  # while modules are imported; commands handle it themselves
        return INTERRUPTED
