"""Validates a listener's tokens: with the issuer's keys, or without a signature if its options allow that."""

from __future__ import annotations

from contextlib import ExitStack

from broker.clock import Clock
from broker.config.oauth import TokenOptions, UnsecuredTokenOptions
from broker.logging import get_logger
from broker.security.oauth.unsecured import unsecured
from protocol.config import ConfigError
from protocol.sasl.oauthbearer import Validate

NEEDED = "sasl.enabled.mechanisms: OAUTHBEARER needs PyJWT and cryptography: pip install 'odradek[oauth]'"

logger = get_logger("broker.security.oauth")


def validator(options: TokenOptions, listener: str, clock: Clock, closing: ExitStack) -> Validate:
    """Returns a function that validates the tokens of a listener until `closing` is closed. Raises ConfigError."""
    if isinstance(options, UnsecuredTokenOptions):
        logger.warning("unsigned tokens are accepted: any client can claim any name", listener=listener)
        return lambda token: unsecured(token, options, clock.now_ms())
    try:
        from broker.security.oauth import signed
    except ImportError as error:
        raise ConfigError(NEEDED, name="sasl.enabled.mechanisms") from error
    return signed.validator(options, listener, clock, closing)
