"""Forks nodes of Odradek from one process that has imported all modules: a node is ready in a tenth of a second.

`python -P nursery.py FOLDER` imports the packages from FOLDER. A line of standard input has the paths of the node's
log, of its output and of its properties, with tabs between; the answer is its process id. Ends with its input.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
import sys

PACKAGES = ("protocol", "storage", "coordinator", "client", "broker", "programs")


def import_all() -> None:
    """Imports the modules of all packages, but not the ones whose libraries are not installed."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)


def become_node(log: str, output: str, properties: str) -> None:
    """Runs a node in this process, which was forked for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    sys.argv = ["odradek", "run", properties]
    sys.exit(importlib.import_module("odradek").main())


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    importlib.import_module("odradek").add_packages()
    import_all()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            become_node(*line.rstrip("\n").split("\t"))
        print(process, flush=True)


if __name__ == "__main__":
    main()
