"""Checks the claims of a signed token (RFC 7519) after its signature was verified.

Source: org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator with its ClaimValidationUtils, and jose4j's
JwtConsumer.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.config.oauth import SignedTokenOptions
from protocol.sasl.oauthbearer import BearerToken, TokenRefused

MAX_SECONDS = (1 << 63) // 1000 - 1
"""The latest time whose milliseconds fit into an int64."""

Claims = Mapping[str, object]


def proven(claims: Claims, options: SignedTokenOptions, now_ms: int) -> BearerToken:
    """Returns the token that valid claims prove. Raises TokenRefused."""
    expires = required_time(claims, "exp")
    _check_times(claims, expires, options.clock_skew_seconds, now_ms / 1000)
    _check_audience(claims.get("aud"), options.audiences)
    if options.issuer is not None and claims.get("iss") != options.issuer:
        raise TokenRefused(f"the issuer (iss) is {claims.get('iss')!r}, not {options.issuer!r}")
    _check_scope(claims.get(options.scope_claim), options.scope_claim)
    return BearerToken(_subject(claims.get(options.sub_claim), options.sub_claim), round(expires * 1000))


def time_claim(claims: Claims, name: str) -> float | None:
    """Returns a time in seconds since 1970; None if it is missing. Raises TokenRefused."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise TokenRefused(f"{name} is not a time in seconds since 1970")
    return value


def required_time(claims: Claims, name: str) -> float:
    """Returns a required time. Raises TokenRefused."""
    value = time_claim(claims, name)
    if value is None:
        raise TokenRefused(f"{name} is missing")
    return value


def _check_times(claims: Claims, expires: float, skew: int, now: float) -> None:
    """Raises TokenRefused for a token that isn't valid now, by clocks that differ by at most `skew` seconds."""
    issued, not_before = required_time(claims, "iat"), time_claim(claims, "nbf")
    if now - skew >= expires:
        raise TokenRefused(f"it expired at {expires} (exp); now it is {now}, and clocks may differ by {skew} s")
    if expires < issued:
        raise TokenRefused(f"it expires at {expires} (exp), before it was issued at {issued} (iat)")
    if not_before is not None and expires < not_before:
        raise TokenRefused(f"it expires at {expires} (exp), before it becomes valid at {not_before} (nbf)")
    if not_before is not None and now + skew < not_before:
        raise TokenRefused(
            f"it becomes valid at {not_before} (nbf); now it is {now}, and clocks may differ by {skew} s"
        )


def _check_audience(audience: object, expected: frozenset[str]) -> None:
    """Raises TokenRefused for a token with another audience. A broker that expects none accepts any."""
    if not expected:
        return
    named = [audience] if isinstance(audience, str) else audience
    if not isinstance(named, list) or not any(isinstance(name, str) and name in expected for name in named):
        raise TokenRefused(f"the audience (aud) is {audience!r}, which contains none of {sorted(expected)}")


def _check_scope(scope: object, name: str) -> None:
    """Raises TokenRefused for scopes that are blank or repeated; their values aren't checked."""
    scopes = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    trimmed = [text.strip() for text in scopes if isinstance(text, str)]
    if len(trimmed) != len(scopes) or not all(trimmed) or len(set(trimmed)) != len(trimmed):
        raise TokenRefused(f"{name} has scopes that are blank, repeated, or not strings")


def _subject(subject: object, name: str) -> str:
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"{name} is missing or blank")
    return subject.strip()
