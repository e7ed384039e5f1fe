"""The import name of the wheel, and the `odradek` command.

The packages of Odradek import each other as `protocol`, `storage`, `coordinator` and `broker`. In a wheel they are
folders inside this one, in the source tree they lie beside it. The command puts the folder that holds them first on its
own path, so that a user's environment never sees those names.
"""

import os
import sys


def main() -> int:
    """Run the command line; returns the exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.isdir(os.path.join(here, "broker"))
    sys.path.insert(0, here if installed else os.path.dirname(here))
    from broker.process.cli import main as run

    return run()
