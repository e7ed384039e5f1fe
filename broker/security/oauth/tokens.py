"""Validates a listener's tokens: with the issuer's keys, or without a signature if its options allow that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from broker.clock import Clock
from broker.config.oauth import TokenOptions, UnsecuredTokenOptions
from broker.logging import get_logger
from broker.security.oauth.unsecured import unsecured
from protocol.config import ConfigError
from protocol.sasl.oauthbearer import OAuthBearerServer, Validate

NEEDED = "sasl.enabled.mechanisms: OAUTHBEARER needs PyJWT and cryptography: pip install 'odradek[oauth]'"

logger = get_logger(__name__)


def beginner(options: TokenOptions, listener: str, clock: Clock, closing: ExitStack) -> Callable[[], OAuthBearerServer]:
    """Returns a function that begins the exchange of a client of a listener, until `closing` is closed. Raises
    ConfigError."""
    return partial(OAuthBearerServer, _validator(options, listener, clock, closing))


def _validator(options: TokenOptions, listener: str, clock: Clock, closing: ExitStack) -> Validate:
    if isinstance(options, UnsecuredTokenOptions):
        logger.warning("unsigned tokens are accepted: any client can claim any name", listener=listener)
        return lambda token: unsecured(token, options, clock.now_ms())
    try:
        from broker.security.oauth import signed
    except ImportError as error:
        raise ConfigError(NEEDED, name="sasl.enabled.mechanisms") from error
    return signed.validator(options, listener, clock, closing)
