"""The program of `odradek pipeline`: runs a job, and prints its failure as a line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from cli.actions import Program
from cli.exits import FAILED, fail
from pipeline.errors import PipelineError


def run(options: argparse.Namespace) -> int:
    """Runs a job. Returns the exit code."""
    action: Callable[[argparse.Namespace], int] = options.action
    try:
        return action(options)
    except PipelineError as error:
        return fail(FAILED, str(error))


PROGRAM: Final = Program(run, "0 done, 1 failed, 2 wrong arguments")
