"""Validates tickets for this broker with its key in a keytab, through the system's Kerberos library (MIT or Heimdal).

It never contacts a KDC. It reads the keytab and krb5.conf, and reads and writes the library's replay cache.

Source: org.apache.kafka.common.security.kerberos.KerberosLogin, KerberosError,
com.sun.security.auth.module.Krb5LoginModule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

import gssapi
import gssapi.raw
from gssapi.raw.misc import GSSError

from broker.clock import Clock
from broker.config.kerberos import TicketOptions
from broker.security.kerberos_names import LocalNames
from broker.security.key_stores import check_private
from protocol.config import ConfigError
from protocol.errors import ProtocolError
from protocol.sasl.exchange import SaslError, ServerExchange
from protocol.sasl.gssapi import EstablishedContext, GssapiServer

KERBEROS: Final = gssapi.MechType.kerberos
"""The only accepted mechanism: SPNEGO would negotiate another."""

MAX_REASON: Final = 300
"""Maximum length of a logged error: names in it come from the client."""

FIRST_CODE: Final = -1765328384
"""The library's number for Kerberos' error 0 (RFC 4120, 7.5.9)."""

TRANSIENT: Final = frozenset({21, 33, 34})
"""Errors after which the client should retry: the ticket isn't valid yet, because clocks differ, or it is a replay,
which the client's network may cause.
"""


def acceptor(options: TicketOptions, clock: Clock) -> Callable[[], ServerExchange]:
    """Returns a function that begins the exchange of a client. Raises ConfigError, which names the invalid option."""
    names = LocalNames(options.rules, default_realm())
    credentials = credentials_of(options)
    now_ms = clock.now_ms if options.session_ends_with_ticket else None
    return lambda: GssapiServer(TicketContext(credentials, now_ms), names.name)


def credentials_of(options: TicketOptions) -> gssapi.Credentials:
    """Returns the credentials that accept tickets for a principal. Raises ConfigError if the keytab has no key for
    it."""
    check_private(options.jaas_option, options.keytab)
    try:
        name = gssapi.Name(options.principal, gssapi.NameType.kerberos_principal)
        store: dict[bytes | str, bytes | str] = {"keytab": f"FILE:{options.keytab}"}
        return gssapi.Credentials(usage="accept", name=name, mechs=[KERBEROS], store=store)
    except GSSError as error:
        problem = f"keyTab {options.keytab}, principal {options.principal}: {reason_of(error)}"
        raise ConfigError(f"{options.jaas_option}: {problem}", name=options.jaas_option) from error


def default_realm() -> str:
    """Returns the realm of principals without one, from krb5.conf; empty if it has none."""
    try:
        name = gssapi.Name("any", gssapi.NameType.kerberos_principal).canonicalize(KERBEROS)
    except GSSError:
        return ""
    return str(name).rpartition("@")[2]


class TicketContext:
    """The security context of one client."""

    def __init__(self, credentials: gssapi.Credentials, now_ms: Callable[[], int] | None) -> None:
        """`now_ms` returns the time from which the lifetime of tickets counts; None if sessions don't end with their
        tickets.
        """
        self._credentials = credentials
        self._now_ms = now_ms
        self._context: gssapi.SecurityContext | None = None

    def accept(self, token: bytes) -> EstablishedContext:
        with _refusals():
            accepted = gssapi.raw.accept_sec_context(token, acceptor_creds=self._credentials)
            if accepted.more_steps:  # the library has an error token for the client, which may try another token
                raise SaslError("the ticket is rejected: the token is of another kind")
            self._context = cast(gssapi.SecurityContext, accepted.context)  # the type has all attributes that are used
            name: bytes = gssapi.raw.display_name(accepted.initiator_name, name_type=False).name
        principal = name.decode("utf-8", "backslashreplace")
        return EstablishedContext(bytes(accepted.token or b""), principal, self._end(accepted.lifetime))

    def _end(self, lifetime_seconds: int | None) -> int | None:
        if self._now_ms is None or lifetime_seconds is None:
            return None
        return self._now_ms() + lifetime_seconds * 1000

    def wrap(self, message: bytes) -> bytes:
        assert self._context is not None, "the security context is established"
        with _refusals():
            return bytes(gssapi.raw.wrap(self._context, message, confidential=False).message)

    def unwrap(self, message: bytes) -> bytes:
        assert self._context is not None, "the security context is established"
        with _refusals():
            return bytes(gssapi.raw.unwrap(self._context, bytes(bytearray(message))).message)  # may modify its input


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns an error of the library into SaslError. If the client should retry, raises ProtocolError instead, which
    closes the connection without an answer.
    """
    try:
        yield
    except GSSError as error:
        if (error.min_code - FIRST_CODE) & 0xFFFF_FFFF in TRANSIENT:
            raise ProtocolError(f"its ticket is rejected this time: {reason_of(error)}", offset=0) from error
        raise SaslError(f"the ticket is rejected: {reason_of(error)}") from error


def reason_of(error: GSSError) -> str:
    """Returns the mechanism's text for an error, or GSSAPI's if there is none."""
    statuses = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(error.maj_code, True)
    return "; ".join(map(str, statuses))[:MAX_REASON]
