"""`odradek token`: delegation tokens (KIP-48)."""

from __future__ import annotations

import argparse
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Final

from cli.actions import Actions
from cli.flags import OWNER, YES, Flag, duration
from cli.parser import Parser
from cli.times import show_time
from commands.errors import misuse, raise_if
from commands.files import read_text
from commands.printing import Row
from commands.session import Session
from protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

BROKER_DEFAULT: Final = -1
"""A time that the broker chooses: delegation.token.max.lifetime.ms, delegation.token.expiry.time.ms."""

AT_ONCE: Final = -1
"""The period that expires a token immediately."""

MORE: Final = """\
The connection must be authenticated, by SASL or a TLS certificate, and the brokers need delegation.token.secret.key. A
client authenticates with a token by SCRAM: its id is the user, its hmac the password. The hmac is the first line of
standard input or of --hmac-file, never on the command line."""


def declare(actions: Actions) -> None:
    actions.add(
        "create",
        "create a token; its holder can authenticate as its owner until it expires",
        create,
        options=_create_options,
        examples=("odradek token create", "odradek token create --lifetime 1d --renewer User:spark"),
        more=MORE,
    )
    actions.add(
        "list",
        "list tokens, without their secrets",
        list_all,
        options=_list_options,
        examples=("odradek token list", "odradek token list --owner User:ana"),
    )
    actions.add(
        "renew",
        "extend the expiry of a token",
        renew,
        options=_renew_options,
        examples=("odradek token renew --for 12h --hmac-file token",),
        more=MORE,
    )
    actions.add(
        "expire",
        "expire a token, at once or after a time",
        expire,
        options=_expire_options,
        examples=("odradek token expire --hmac-file token --yes",),
        more=MORE,
    )


def _create_options(parser: Parser) -> None:
    Flag(("--lifetime",), "longest life of the token; default: the brokers'", "DURATION", duration).add(parser)
    OWNER.add(parser, help="its owner, if not the user of the connection")
    Flag(("--renewer",), "a user who may renew it", "User:NAME").add(parser, repeatable=True)


def _list_options(parser: Parser) -> None:
    OWNER.add(parser, help="only tokens of this owner", repeatable=True)


def _hmac_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hmac-file", default="-", metavar="FILE", help="file with the hmac; default: standard input")


def _renew_options(parser: Parser) -> None:
    _hmac_options(parser)
    Flag(("--for",), "time until it expires; default: the brokers'", "DURATION", duration, dest="period").add(parser)


def _expire_options(parser: Parser) -> None:
    _hmac_options(parser)
    Flag(("--after",), "time until it expires; default: at once", "DURATION", duration, dest="period").add(parser)
    YES.add(parser)


async def create(session: Session) -> None:
    options = session.options
    owner_type, owner = _principal("--owner", options.owner) if options.owner else (None, None)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in (_principal("--renewer", text) for text in options.renewer)
        ],
        max_lifetime_ms=BROKER_DEFAULT if options.lifetime is None else options.lifetime,
    )
    answer = await session.cluster.controller(request, CreateDelegationTokenResponse)
    raise_if("the token", answer.error_code)
    row: Row = {
        "token": answer.token_id,
        "hmac": b64encode(answer.hmac).decode(),
        "owner": f"{answer.principal_type}:{answer.principal_name}",
        "expires": show_time(answer.expiry_timestamp_ms),
        "ends": show_time(answer.max_timestamp_ms),
    }
    session.output.rows(tuple(row), [row])


async def list_all(session: Session) -> None:
    owners = [
        DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
        for kind, name in (_principal("--owner", text) for text in session.options.owner)
    ]
    request = DescribeDelegationTokenRequest(owners=owners or None)
    answer = await session.cluster.any(request, DescribeDelegationTokenResponse)
    raise_if("tokens", answer.error_code)
    rows: list[Row] = [
        {
            "token": token.token_id,
            "owner": f"{token.principal_type}:{token.principal_name}",
            "requester": f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
            "renewers": _names((renewer.principal_type, renewer.principal_name) for renewer in token.renewers),
            "issued": show_time(token.issue_timestamp),
            "expires": show_time(token.expiry_timestamp),
            "ends": show_time(token.max_timestamp),
        }
        for token in sorted(answer.tokens, key=lambda token: token.token_id)
    ]
    columns = ("token", "owner", "requester", "renewers", "issued", "expires", "ends")
    session.output.rows(columns, rows, empty="there are no tokens")


async def renew(session: Session) -> None:
    period_ms = BROKER_DEFAULT if session.options.period is None else session.options.period
    request = RenewDelegationTokenRequest(hmac=_hmac(session), renew_period_ms=period_ms)
    answer = await session.cluster.controller(request, RenewDelegationTokenResponse)
    raise_if("the token", answer.error_code)
    session.output.rows(("expires",), [{"expires": show_time(answer.expiry_timestamp_ms)}])


async def expire(session: Session) -> None:
    hmac, period_ms = _hmac(session), session.options.period
    if period_ms is None:
        session.confirm(["token"], "to expire the")
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=AT_ONCE if period_ms is None else period_ms)
    answer = await session.cluster.controller(request, ExpireDelegationTokenResponse)
    raise_if("the token", answer.error_code)
    session.output.rows(("expires",), [{"expires": show_time(answer.expiry_timestamp_ms)}])


def _principal(option: str, text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise misuse(f"{option} {text}: expected a type and a name, such as User:{text}")
    return kind, name


def _names(principals: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{kind}:{name}" for kind, name in principals]


def _hmac(session: Session) -> bytes:
    lines = read_text(session.options.hmac_file, "--hmac-file").splitlines()
    try:
        hmac = b64decode(lines[0].strip(), validate=True) if lines else b""
    except ValueError:
        raise misuse("--hmac-file: the first line is not base64, as `odradek token create` prints it") from None
    if not hmac:
        raise misuse("--hmac-file: there is no hmac in the first line")
    return hmac
