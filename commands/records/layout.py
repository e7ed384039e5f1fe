"""The layout of printed records: the options of commands, and the function that prints a record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from cli.flags import FORMAT, JSON
from commands.errors import misuse
from commands.printing import as_json
from commands.records.output import PrintedRecord, as_row, compile_format
from commands.session import Session

PLAIN_FORMAT: Final = "%s\\n"
"""The format on a terminal if no format is given: the values alone."""


def add_record_layout(parser: argparse.ArgumentParser) -> None:
    """Adds the options --format and --json."""
    FORMAT.add(parser)
    JSON.add(parser)


def record_writer(session: Session) -> Callable[[PrintedRecord], None]:
    """Returns the function that prints a record."""
    options = session.options
    if options.format is not None and options.json:
        raise misuse("--format and --json exclude each other")
    if options.json or (options.format is None and session.output.is_json):
        return lambda printed: session.output.line(as_json(as_row(printed)))
    render = compile_format(options.format if options.format is not None else PLAIN_FORMAT)

    def write(printed: PrintedRecord) -> None:
        sys.stdout.flush()
        content = render(printed)
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(content.decode(errors="replace"))
        else:
            buffer.write(content)

    return write
