"""`odradek user`: SCRAM credentials (KIP-554)."""

from __future__ import annotations

import argparse

from cli.actions import Actions
from cli.flags import MECHANISM, YES, integer
from commands.errors import misuse
from commands.files import read_text
from commands.session import Session
from commands.state.users import ITERATIONS, delete_password, set_password, user_rows


def declare(actions: Actions) -> None:
    actions.add("list", "list users with their SCRAM mechanisms", list_all, examples=("odradek user list",))
    actions.add(
        "set",
        "give a user a password",
        change,
        options=_set_options,
        examples=("echo secret | odradek user set ana", "echo secret | odradek user set ana --mechanism SCRAM-SHA-256"),
        more="The password is the first line of standard input or of --password-file, never on the command line.",
    )
    actions.add(
        "delete",
        "delete a user's password",
        delete,
        options=_delete_options,
        examples=("odradek user delete ana --mechanism SCRAM-SHA-256 --yes", "odradek user delete ana --yes"),
    )


async def list_all(session: Session) -> None:
    rows = await user_rows(session.cluster)
    session.output.rows(("user", "mechanism", "iterations"), rows, empty="there are no users with SCRAM credentials")


def _set_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    MECHANISM.add(parser, default="SCRAM-SHA-512")
    parser.add_argument("--iterations", type=integer, default=ITERATIONS, metavar="N", help=f"default: {ITERATIONS}")
    parser.add_argument(
        "--password-file",
        default="-",
        metavar="FILE",
        help="file whose first line is the password; default: standard input",
    )


async def change(session: Session) -> int:
    options = session.options
    lines = read_text(options.password_file, "--password-file").splitlines()
    if not lines or not lines[0]:
        raise misuse(f"--password-file {options.password_file}: the first line, the password, is empty")
    if options.iterations < 1:
        raise misuse(f"--iterations {options.iterations}: brokers accept 4096 or more")
    rows = await set_password(session.cluster, options.user, options.mechanism, lines[0], options.iterations)
    return session.results(("user", "mechanism"), rows)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    MECHANISM.add(parser, default="SCRAM-SHA-512")
    YES.add(parser)


async def delete(session: Session) -> int:
    options = session.options
    session.confirm([options.user], "to delete the password of")
    rows = await delete_password(session.cluster, options.user, options.mechanism)
    return session.results(("user", "mechanism"), rows)
