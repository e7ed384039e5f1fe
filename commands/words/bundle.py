"""`odradek cluster bundle`: a file for a report of a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cli.actions import Actions
from cli.flags import Flag
from cli.parser import Parser
from commands.session import Session
from protocol.lazy import lazy

if TYPE_CHECKING:
    from commands.state import bundle_file
else:  # it needs an event loop and an HTTP client
    bundle_file = lazy("commands.state.bundle_file")

MORE: Final = """\
The file is a ZIP archive of JSON lines: brokers, features, quorum, topics with offsets, configs, log directories,
groups with lags, and the doctor's findings. --log adds the end of a log file, --metrics what a metrics listener serves.
Passwords, private keys and other secrets are removed, by their names; the records of topics are not read. errors.json
has the parts that could not be read. Look through the file before you pass it on: it has names of topics, hosts and
clients."""


def declare(actions: Actions) -> None:
    actions.only(
        bundle,
        concurrent=True,
        options=_options,
        examples=("odradek cluster bundle bundle.zip",),
        more=MORE,
    )


def _options(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="ZIP archive to write")
    Flag(("--log",), "the log file of a broker", "FILE").add(parser, repeatable=True)
    Flag(("--metrics",), "address of a metrics listener, such as http://127.0.0.1:9404/metrics", "URL").add(
        parser, repeatable=True
    )


async def bundle(session: Session) -> int:
    return await bundle_file.write_bundle(session)
