"""`odradek pipeline JOB`: one command per job, each in pipeline/commands/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

JOBS = {
    "generate": "an activity stream out of a seed, into a topic",
    "load": "ranges of topics into a store of Parquet files, exactly once",
    "stream": "the same store, fed by Structured Streaming",
    "report": "analytics of an activity stream: Parquet, and a page with plots",
    "mirror": "topics of one cluster to another, with partitions, headers and timestamps",
    "replay": "a store back into a topic, in order, at full or at recorded speed",
    "audit": "what is in topics, store and mirror, and where they differ",
}

FAILED = 1
EXTRA = "odradek: `odradek pipeline` needs {missing}: pip install 'odradek[pipeline]', or make setup-pipeline\n"


class Command(Protocol):
    """A module of pipeline/commands/."""

    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, options: argparse.Namespace) -> int: ...


def main(words: Sequence[str]) -> int:
    """Run a job; its exit code: 0, 1 with a message when it failed, 2 for usage, 3 for what an audit found."""
    parser = argparse.ArgumentParser(
        prog="odradek pipeline",
        description="Jobs over topics on Apache Spark.",
        epilog="jobs:\n" + "".join(f"  {name:<10}{summary}\n" for name, summary in JOBS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", choices=JOBS, help="one of those below; JOB --help has an example")
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
