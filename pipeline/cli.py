"""`odradek pipeline JOB`: one command per job, each in pipeline/commands/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

JOBS = {
    "generate": "write a generated activity stream to a topic",
    "load": "load ranges of topics into a store of Parquet files, exactly once",
    "stream": "load into the same store continuously, by Structured Streaming",
    "report": "analyse an activity stream: Parquet files, and a page with plots",
    "mirror": "copy topics to another cluster, with partitions, headers and timestamps",
    "replay": "write a store back to topics, in order, at full or at recorded speed",
    "audit": "compare topics, store and mirror, and show their differences",
}

FAILED = 1
EXTRA = "odradek: `odradek pipeline` needs {missing}: pip install 'odradek[pipeline]', or make setup-pipeline\n"


class Command(Protocol):
    """A module of pipeline/commands/."""

    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, options: argparse.Namespace) -> int: ...


def main(words: Sequence[str]) -> int:
    """Runs a job. Returns the exit code: 0; 1 with a message if it failed; 2 for wrong usage; 3 for an audit's
    findings."""
    parser = argparse.ArgumentParser(
        prog="odradek pipeline",
        description="Jobs over topics on Apache Spark.",
        epilog="jobs:\n" + "".join(f"  {name:<10}{summary}\n" for name, summary in JOBS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", choices=JOBS, help="a job of the list below; JOB --help has an example")
    job = parser.parse_args(words[:1]).job
    from pipeline.errors import PipelineError

    try:
        return _run(job, words[1:])
    except ModuleNotFoundError as error:
        sys.stderr.write(EXTRA.format(missing=error.name))
    except PipelineError as error:
        sys.stderr.write(f"odradek: {error}\n")
    return FAILED


def _run(job: str, words: Sequence[str]) -> int:
    command: Command = import_module(f"pipeline.commands.{job}")
    parser = argparse.ArgumentParser(
        prog=f"odradek pipeline {job}",
        description=f"{job}: {JOBS[job]}.",
        epilog=f"example:\n  {command.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.arguments(parser)
    return command.run(parser.parse_args(words))
