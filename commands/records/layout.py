"""How records are printed: the options of commands that read some, and what prints one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from commands.declaring import Session
from commands.errors import misuse
from commands.printing import as_json
from commands.records.output import PrintedRecord, as_row, compile_format

PLAIN_FORMAT: Final = "%s\\n"
"""On a terminal, without a format: values alone."""


def add_record_layout(parser: argparse.ArgumentParser) -> None:
    """Adds how records are printed."""
    parser.add_argument("-f", "--format", metavar="FORMAT", help="see above")
    parser.add_argument("-J", "--json", action="store_true", help="the same as -o json: lines with kcat's names")


def record_writer(session: Session) -> Callable[[PrintedRecord], None]:
    """Returns what prints a record."""
    options = session.options
    if options.format is not None and options.json:
        raise misuse("--format and --json: a record is printed in one of these")
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
