"""`odradek user`: SCRAM credentials (KIP-554)."""

from __future__ import annotations

import argparse
import hashlib
import os
from typing import Final

from cli.actions import Actions
from cli.flags import MECHANISM, YES, integer
from commands.errors import explain, misuse, raise_if
from commands.files import read_text
from commands.printing import Row
from commands.session import Session
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
NAMES: Final = {number: name for name, (number, _) in MECHANISMS.items()}
SALT_BYTES: Final = 20
ITERATIONS: Final = 8192
"""Twice Kafka's minimum; the default of Kafka's tools for SHA-512."""


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
    request = DescribeUserScramCredentialsRequest(users=None)
    answer = await session.cluster.any(request, DescribeUserScramCredentialsResponse)
    raise_if("users", answer.error_code, answer.error_message)
    rows: list[Row] = [
        {"user": user.user, "mechanism": NAMES.get(info.mechanism, "unknown"), "iterations": info.iterations}
        for user in sorted(answer.results, key=lambda result: result.user)
        for info in sorted(user.credential_infos, key=lambda info: info.mechanism)
    ]
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
    mechanism, digest = MECHANISMS[options.mechanism]
    if options.iterations < 1:
        raise misuse(f"--iterations {options.iterations}: brokers accept 4096 or more")
    salt = os.urandom(SALT_BYTES)
    credential = ScramCredentialUpsertion(
        name=options.user,
        mechanism=mechanism,
        iterations=options.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(digest, lines[0].encode(), salt, options.iterations),
    )
    return await _alter(session, AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential]), "set")


def _delete_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    MECHANISM.add(parser, default="SCRAM-SHA-512")
    YES.add(parser)


async def delete(session: Session) -> int:
    options = session.options
    session.confirm([options.user], "to delete the password of")
    deletion = ScramCredentialDeletion(name=options.user, mechanism=MECHANISMS[options.mechanism][0])
    return await _alter(session, AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]), "deleted")


async def _alter(session: Session, request: AlterUserScramCredentialsRequest, done: str) -> int:
    answer = await session.cluster.controller(request, AlterUserScramCredentialsResponse)
    mechanism = session.options.mechanism
    rows: list[Row] = [
        {"user": result.user, "mechanism": mechanism, "error": explain(result.error_code, result.error_message)}
        if result.error_code
        else {"user": result.user, "mechanism": mechanism, "result": done}
        for result in answer.results
    ]
    return session.results(("user", "mechanism"), rows)
