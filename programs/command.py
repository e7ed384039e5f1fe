"""The program of the commands that run or prepare a node: their common options, and errors of the configuration."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from broker.config.sources import ConfigProblems
from cli.actions import Program
from cli.exits import FAILED, MISUSED, fail
from cli.flags import CONFIG, SET
from cli.parser import Parser
from protocol.config import ConfigError


def run(options: argparse.Namespace) -> int:
    """Runs an action. Returns the exit code."""
    action: Callable[[argparse.Namespace], int] = options.action
    try:
        return action(options)
    except ConfigProblems as error:
        return fail(MISUSED, *error.problems)
    except ConfigError as error:
        return fail(MISUSED, error.message)
    except OSError as error:
        return fail(FAILED, str(error))


PROGRAM: Final = Program(run, "0 done, 1 failed, 2 wrong arguments or configuration")


def add_settings(parser: Parser) -> None:
    """Adds the option that sets options of the node."""
    SET.add(parser, repeatable=True, help="an option of the node, by Kafka's name")


def add_node_settings(parser: Parser) -> None:
    """Adds the options that name the node's configuration."""
    CONFIG.add(parser, "-c", help="the node's server.properties")
    add_settings(parser)
