"""The `odradek` command: reads the configuration and runs a broker; exits with 2 if the configuration is invalid."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from broker.config.files import read_file
from broker.config.sources import (
    ConfigProblems,
    Loaded,
    from_assignments,
    from_environment,
    from_file,
    from_flags,
    load,
)

CONFIG_ERROR = 2
NOTHING_BESIDE: Final[Mapping[str, str]] = MappingProxyType({})

DEV_PROFILE = "odradek.profile=dev"
"""The profile of a broker that is started without an options file, for trying it out."""

FORMATTING = {
    "format": "format a node's log directories for a cluster, as kafka-storage format does",
    "info": "print the owners of log directories",
    "random-uuid": "print an id for a new cluster or directory",
}
"""The commands of `kafka-storage`, with their purposes."""

DESCRIPTION = "A broker with Kafka's protocol, for all Kafka clients, and Kafka's on-disk format."
RUN_DESCRIPTION = """\
Run a broker until SIGTERM or SIGINT. It prints "ready HOST:PORT" on standard output once it serves, and logs on
standard error. Without arguments it listens on 127.0.0.1:9092 and keeps its data in ./data.

Options have the names that Apache Kafka gives them; docs/configuration.md lists them all. From the weakest source:
  defaults, server.properties, environment (KAFKA_LOG_RETENTION_MS=60000), --set, --data and --listen.
"""
EXAMPLES = """\
examples:
  odradek run
  odradek run --data /var/lib/odradek --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://broker.example:9092
  odradek run server.properties --set log.retention.hours=24
  odradek run --data "$(mktemp -d)" --listen 127.0.0.1:0
"""


def main(arguments: Sequence[str] | None = None, beside: Mapping[str, str] = NOTHING_BESIDE) -> int:
    """Runs the command line, and returns the process's exit code. `beside` has the other commands with their purposes,
    for the help."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["pipeline"]:
        return _pipeline(words[1:])
    if words[:1] == ["log"]:
        from programs.log.commands import main as log_main

        return log_main(words[1:])
    if words[:1] == ["cluster"]:
        from programs.cluster.commands import main as cluster_main

        return cluster_main(words[1:])
    if words[:1] and words[0] in FORMATTING:
        from programs.format.commands import main as formatting_main

        return formatting_main(words)
    options = _parser(beside).parse_args(words)
    try:
        loaded = _load(options)
    except ConfigProblems as error:
        for problem in error.problems:
            sys.stderr.write(f"odradek: {problem}\n")
        return CONFIG_ERROR
    _warn(loaded)
    gc.disable()  # the objects of the start are long-lived: the server enables collection once it serves
    from programs.run.running import run

    return run(loaded.config)


def _parser(beside: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="odradek", description=DESCRIPTION)
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    raw = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser(
        "run", help="run a broker", description=RUN_DESCRIPTION, epilog=EXAMPLES, formatter_class=raw
    )
    run.add_argument("file", nargs="?", metavar="server.properties", help="a Java properties file with Kafka's options")
    run.add_argument("--data", metavar="DIR", help="directory of the logs, created if missing (log.dirs)")
    run.add_argument("--listen", metavar="HOST:PORT", help="address to listen on; port 0 is any free port (listeners)")
    run.add_argument(
        "--set", metavar="KEY=VALUE", dest="assignments", action="append", default=[], help="set one option; repeatable"
    )
    commands.add_parser("cluster", help="run a controller and several brokers on this machine", add_help=False)
    for name, purpose in FORMATTING.items():
        commands.add_parser(name, help=purpose, add_help=False)
    commands.add_parser("log", help="print, verify or repair data directories", add_help=False)
    commands.add_parser(
        "pipeline", help="jobs over topics on Apache Spark: load, stream, report, audit, …", add_help=False
    )
    for name, purpose in beside.items():
        commands.add_parser(name, help=purpose, add_help=False)
    return parser


def _pipeline(words: list[str]) -> int:
    """Runs jobs on Spark. They connect to brokers over TCP, and need packages that a broker doesn't need."""
    from importlib import import_module

    try:
        jobs = import_module("pipeline.cli")
    except ModuleNotFoundError:
        sys.stderr.write(
            "odradek: the pipeline is not installed: an image has only the broker, the Python package has both\n"
        )
        return 1
    status: int = jobs.main(words)
    return status


class _Version(argparse.Action):
    """Shows the installed version. Only --version looks it up, because that is slow."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            installed = version("odradek")
        except PackageNotFoundError:
            installed = "(a source tree that is not installed)"
        core = "compiled core" if _is_compiled() else "pure Python"
        sys.stdout.write(f"odradek {installed} ({core})\n")
        parser.exit()


def _is_compiled() -> bool:
    """True in a wheel with the extension modules that hatch_build.py makes."""
    from importlib.util import find_spec

    spec = find_spec("broker.network.listener")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


def _load(options: argparse.Namespace) -> Loaded:
    return load(
        from_file(options.file, read_file(options.file))
        if options.file is not None
        else from_assignments([DEV_PROFILE]),
        from_environment(os.environ),
        from_assignments(options.assignments),
        from_flags(options.data, options.listen),
    )


def _warn(loaded: Loaded) -> None:
    """Logs one line for each reason why given options have no effect."""
    from broker.logging import get_logger

    logger = get_logger("config")
    for reason in dict.fromkeys(unused.reason for unused in loaded.unused):
        names = [unused.setting.name for unused in loaded.unused if unused.reason == reason]
        logger.warning("options without effect", reason=reason, options=names)
