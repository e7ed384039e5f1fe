"""`odradek run`: reads the configuration and runs a broker."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from broker.config.files import read_file
from broker.config.sources import Loaded, from_assignments, from_environment, from_file, from_flags, load
from broker.logging import get_logger
from cli.actions import Actions
from cli.exits import FAILED, fail
from cli.flags import DATA, LISTEN
from cli.parser import Parser
from cli.table import CONSOLE_PACKAGES, NEEDS_CONSOLE
from programs.command import add_settings
from protocol.lazy import lazy

if TYPE_CHECKING:
    from programs.run import running
else:  # not for the help
    running = lazy("programs.run.running")

DEV_PROFILE: Final = "odradek.profile=dev"
"""The profile of a broker that is started without an options file, for trying it out."""

MORE: Final = """\
It serves until SIGTERM or SIGINT. It prints "ready HOST:PORT" on standard output once it serves, and logs on standard
error. Without arguments it listens on 127.0.0.1:9092 and keeps its data in ./data.

Options have the names that Apache Kafka gives them; docs/configuration.md lists them all. They come from these
sources, and a later source overrides an earlier one:
  defaults, server.properties, environment (KAFKA_LOG_RETENTION_MS=60000), --set, --data and --listen.
"""


def declare(actions: Actions) -> None:
    actions.only(
        run_broker,
        options=_options,
        examples=(
            "odradek run",
            "odradek run --data /var/lib/odradek --listen 0.0.0.0:9092 "
            "--set advertised.listeners=PLAINTEXT://broker.example:9092",
            "odradek run server.properties --set log.retention.hours=24",
            'odradek run --data "$(mktemp -d)" --listen 127.0.0.1:0',
            "odradek run --console --console-options '--allow-changes --listen 127.0.0.1:8081'",
        ),
        more=MORE,
        exit_codes="0 stopped, 1 cannot start, 2 wrong arguments or configuration",
    )


def _options(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="server.properties", help="a Java properties file with Kafka's options"
    )
    DATA.add(parser, help="directory of the logs, created if missing (log.dirs)")
    LISTEN.add(parser, help="address to listen on; port 0 is any free port (listeners)")
    parser.add_argument("--console", action="store_true", help="run `odradek console` beside the broker")
    parser.add_argument(
        "--console-options", metavar="OPTIONS", default="", help="options of the console, such as '--allow-changes'"
    )
    add_settings(parser)


def run_broker(options: argparse.Namespace) -> int:
    """Runs a broker until it is stopped. Returns the exit code."""
    loaded = load_options(options, os.environ)
    _warn(loaded)
    gc.disable()  # the objects of the start are long-lived: `interpreter` enables it once the node serves
    if not options.console:
        return running.run(loaded.config)
    if (missing := next((name for name in CONSOLE_PACKAGES if find_spec(name) is None), None)) is not None:
        return fail(FAILED, NEEDS_CONSOLE.format(missing=missing))
    return running.run(loaded.config, shlex.split(options.console_options))


def load_options(options: argparse.Namespace, environ: Mapping[str, str]) -> Loaded:
    """Returns the configuration of the command's options, and of the environment. Raises ConfigError."""
    return load(
        from_file(options.file, read_file(options.file))
        if options.file is not None
        else from_assignments([DEV_PROFILE]),
        from_environment(environ),
        from_assignments(options.assignments),
        from_flags(options.data, options.listen),
    )


def _warn(loaded: Loaded) -> None:
    """Logs one line for each reason why given options have no effect."""
    logger = get_logger("config")
    for reason in dict.fromkeys(unused.reason for unused in loaded.unused):
        names = [unused.setting.name for unused in loaded.unused if unused.reason == reason]
        logger.warning("options without effect", reason=reason, options=names)
