"""Validates signed tokens with the issuer's keys. Needs PyJWT and cryptography."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from ssl import SSLContext
from urllib.parse import urlsplit
from urllib.request import url2pathname

from broker.clock import Clock
from broker.config.oauth import JWKS_URL, SignedTokenOptions
from broker.config.security import ListenerOptions
from broker.security.certificates import client_context
from broker.security.named_files import read_named_file
from broker.security.oauth.claims import proven
from broker.security.oauth.endpoint import JwksEndpoint, RefreshTimes
from broker.security.oauth.fetching import fetched
from broker.security.oauth.keys import MAX_KEYS_BYTES, KeySet, UnknownKey, UnreadableKeys, claims_of, header_of, key_set
from broker.workers import Workers
from protocol.config import ConfigError
from protocol.errors import ProtocolError
from protocol.sasl.oauthbearer import BearerToken, Validate


def validator(options: SignedTokenOptions, listener: str, clock: Clock, closing: ExitStack) -> Validate:
    """Returns a function that validates the tokens of a listener until `closing` is closed. Raises ConfigError."""

    def with_keys(keys: Callable[[], KeySet | None], miss: Callable[[str], None], token: str) -> BearerToken:
        signed, present = header_of(token), keys()
        if present is None:  # closes the connection: the client retries, but would take a rejection as final
            raise ProtocolError("the keys of the tokens' issuer have not been fetched yet", offset=0)
        try:
            key = present.find(signed)
        except UnknownKey as unknown:
            if unknown.kid is not None:
                miss(unknown.kid)
            raise
        return proven(claims_of(token, signed, key), options, clock.now_ms())

    if options.is_file:
        try:
            path = url2pathname(urlsplit(options.jwks_url).path)
            fixed = key_set(read_named_file(path, MAX_KEYS_BYTES))
        except (OSError, UnreadableKeys) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{JWKS_URL}: {options.jwks_url}: {reason}", name=JWKS_URL) from error
        return partial(with_keys, lambda: fixed, lambda _: None)
    times = RefreshTimes(options.refresh_ms, options.retry_ms, options.retry_max_ms)
    fetch = partial(fetched, options.jwks_url, _tls(options), clock)
    endpoint = JwksEndpoint(fetch, Workers(1, "jwks"), clock, times, listener)
    closing.callback(endpoint.close)
    endpoint.begin()
    return partial(with_keys, lambda: endpoint.keys, endpoint.miss)


def _tls(options: SignedTokenOptions) -> SSLContext | None:
    """Returns the TLS context for connections to the issuer; None for the system's default. Raises ConfigError."""
    if not options.ssl:
        return None
    return client_context(ListenerOptions.parse(options.ssl))
