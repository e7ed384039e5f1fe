"""Unsigned tokens, which any client can make: for tests, and only if an option allows them.

Source: org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler,
OAuthBearerUnsecuredJws, OAuthBearerValidationUtils.
"""

from __future__ import annotations

import binascii
import json

from broker.config.oauth import UnsecuredTokenOptions
from broker.security.oauth.claims import required_time, time_claim
from protocol.sasl.oauthbearer import BearerToken, TokenRefused

PARTS = 3
STANDARD = str.maketrans("-_", "+/")


def unsecured(token: str, options: UnsecuredTokenOptions, now_ms: int) -> BearerToken:
    """Returns the token from its claims. Raises TokenRefused."""
    parts = token.split(".")
    if len(parts) != PARTS or parts[2]:
        raise TokenRefused("an unsigned JWT has two parts and an empty signature")
    if _object(parts[0]).get("alg") != "none":
        raise TokenRefused("Unsecured JWS must have 'none' for an algorithm")
    claims = _object(parts[1])
    principal = claims.get(options.principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise TokenRefused(f"No principal name in JWT claim: {options.principal_claim}")
    expires, issued = required_time(claims, "exp"), time_claim(claims, "iat")
    if issued is not None and issued * 1000 > now_ms + options.clock_skew_ms:
        raise TokenRefused(f"it was issued at {issued} (iat), in the future")
    if now_ms - options.clock_skew_ms >= expires * 1000:
        raise TokenRefused(f"it expired at {expires} (exp)")
    if issued is not None and expires <= issued:
        raise TokenRefused(f"it expires at {expires} (exp), not after it was issued at {issued} (iat)")
    _check_scope(claims.get(options.scope_claim), options.required_scope)
    return BearerToken(principal, round(expires * 1000))


def _check_scope(scope: object, required: tuple[str, ...]) -> None:
    scopes = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    has = {text.strip() for text in scopes if isinstance(text, str)}
    if missing := [name for name in required if name not in has]:
        raise TokenRefused(f"it lacks the scopes {missing}", scope=f"[{', '.join(required)}]")


def _object(part: str) -> dict[str, object]:
    try:
        digits = part.rstrip("=").translate(STANDARD)
        data = binascii.a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)
        value = json.loads(data)
    except (ValueError, RecursionError) as error:  # binascii.Error is a ValueError
        raise TokenRefused("it is not an unsigned JWT") from error
    if not isinstance(value, dict):
        raise TokenRefused("it is not an unsigned JWT")
    return value
