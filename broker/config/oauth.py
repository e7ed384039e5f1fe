"""Reads from a listener's options how it validates OAUTHBEARER tokens. Unsigned tokens are accepted only if an option
names them, because any client can make them.

Source: org.apache.kafka.common.security.oauthbearer.internals.secured.ConfigurationUtils,
OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from broker.config.jaas import LoginModule
from broker.config.oauth_options import JWT_VALIDATORS, OAUTH_MODULE, SIGNED_HANDLERS, UNSECURED_HANDLER
from broker.config.security import ListenerOptions
from protocol.config import ConfigError
from protocol.numbers import whole_number

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER: Final = "sasl.server.callback.handler.class"
VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
UNSECURED_PREFIX: Final = "unsecuredValidator"
SCHEMES: Final = ("http", "https", "file")
SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
MAX_SKEW_MS: Final = (1 << 31) - 1


class SignedTokenOptions(NamedTuple):
    """The source of the keys that sign tokens, and the claims that tokens must have."""

    jwks_url: str
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int
    clock_skew_seconds: int
    audiences: frozenset[str]
    issuer: str | None
    scope_claim: str
    sub_claim: str
    ssl: Mapping[str, str]
    """TLS options of the connection to the issuer, by name."""

    @property
    def is_file(self) -> bool:
        return self.jwks_url.lower().startswith("file:")


class UnsecuredTokenOptions(NamedTuple):
    """The claims that unsigned tokens must have."""

    principal_claim: str
    scope_claim: str
    required_scope: tuple[str, ...]
    clock_skew_ms: int


TokenOptions: TypeAlias = SignedTokenOptions | UnsecuredTokenOptions


def token_options(own: ListenerOptions, module: LoginModule | None) -> TokenOptions:
    """Returns how a listener validates tokens; `module` is its login module, or None. Raises ConfigError."""
    jaas = {} if module is None else module.options
    if module is not None and module.name != OAUTH_MODULE:
        problem = f"the login module is {module.name}; OAUTHBEARER supports only {OAUTH_MODULE}"
        raise ConfigError(f"sasl.jaas.config: {problem}", name="sasl.jaas.config")
    handler, url = own.sasl_server_callback_handler_class, own.sasl_oauthbearer_jwks_endpoint_url
    if handler not in (None, UNSECURED_HANDLER, *SIGNED_HANDLERS):
        problem = f"{handler}: Java classes are not loaded; without its checks, clients that it rejects would get in"
        raise ConfigError(f"{HANDLER}: {problem}; {SIGNED_HANDLERS[0]} is supported", name=HANDLER)
    is_unsecured = handler == UNSECURED_HANDLER or any(name.startswith(UNSECURED_PREFIX) for name in jaas)
    if is_unsecured and (url is not None or handler in SIGNED_HANDLERS):
        problem = f"it requires signed tokens, but {UNSECURED_PREFIX}… allows unsigned tokens; remove one of them"
        raise ConfigError(f"{JWKS_URL}: {problem}", name=JWKS_URL)
    return _unsecured(jaas) if is_unsecured else _signed(own, url, jaas)


def _signed(own: ListenerOptions, url: str | None, jaas: Mapping[str, str]) -> SignedTokenOptions:
    if url is None or not url.strip():
        problem = "it must be the URL of the issuer's keys; unsigned tokens are accepted only with"
        raise ConfigError(f"{JWKS_URL}: {problem} {HANDLER}={UNSECURED_HANDLER}", name=JWKS_URL)
    scheme, colon, _ = url.strip().partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        problem = 'contains an invalid protocol; only "http", "https", and "file" protocol are supported'
        raise ConfigError(f"The OAuth configuration option {JWKS_URL} {problem}", name=JWKS_URL)
    if own.sasl_oauthbearer_jwt_validator_class not in JWT_VALIDATORS:
        problem = f"{own.sasl_oauthbearer_jwt_validator_class}: Java classes are not loaded"
        raise ConfigError(f"{VALIDATOR}: {problem}; {JWT_VALIDATORS[0]} is supported", name=VALIDATOR)
    _check_times(own)
    issuer = (own.sasl_oauthbearer_expected_issuer or "").strip() or None
    _check_expectations(own, issuer)
    return SignedTokenOptions(
        jwks_url=url.strip(),
        refresh_ms=own.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        retry_ms=own.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
        retry_max_ms=own.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        clock_skew_seconds=own.sasl_oauthbearer_clock_skew_seconds,
        audiences=frozenset(own.sasl_oauthbearer_expected_audience),
        issuer=issuer,
        scope_claim=_claim_name("sasl.oauthbearer.scope.claim.name", own.sasl_oauthbearer_scope_claim_name),
        sub_claim=_claim_name("sasl.oauthbearer.sub.claim.name", own.sasl_oauthbearer_sub_claim_name),
        ssl={name: value for name, value in jaas.items() if name.startswith("ssl.")},
    )


def _check_expectations(own: ListenerOptions, issuer: str | None) -> None:
    """Raises ConfigError if tokens of other services or of other issuers would be accepted, unless an option allows
    it.
    """
    for claim, is_expected, is_allowed in (
        ("audience", bool(own.sasl_oauthbearer_expected_audience), own.sasl_oauthbearer_allow_unverified_audience),
        ("issuer", issuer is not None, own.sasl_oauthbearer_allow_unverified_issuer),
    ):
        if not is_expected and not is_allowed:
            name = f"sasl.oauthbearer.expected.{claim}"
            problem = f"it must be set, so that the {claim} of tokens is verified; any {claim} is accepted only with"
            raise ConfigError(f"{name}: {problem} sasl.oauthbearer.allow.unverified.{claim}=true", name=name)


def _check_times(own: ListenerOptions) -> None:
    """Raises ConfigError for a negative time, and for a refresh interval of 0, which would fetch keys all the time."""
    prefix = "sasl.oauthbearer."
    for name, value, least in (
        ("jwks.endpoint.refresh.ms", own.sasl_oauthbearer_jwks_endpoint_refresh_ms, 1),
        ("jwks.endpoint.retry.backoff.ms", own.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms, 0),
        ("jwks.endpoint.retry.backoff.max.ms", own.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms, 0),
        ("clock.skew.seconds", own.sasl_oauthbearer_clock_skew_seconds, 0),
    ):
        if value < least:
            problem = f"The OAuth configuration option {prefix}{name} value must be at least {least}"
            raise ConfigError(problem, name=f"{prefix}{name}")


def _claim_name(name: str, value: str) -> str:
    if not value.strip():
        raise ConfigError(f"The OAuth configuration option {name} value must not contain only whitespace", name=name)
    return value.strip()


def _unsecured(jaas: Mapping[str, str]) -> UnsecuredTokenOptions:
    given = {name: value.strip() for name, value in jaas.items() if name.startswith(UNSECURED_PREFIX)}
    options = {name.removeprefix(UNSECURED_PREFIX): value for name, value in given.items()}
    required = tuple(options.get("RequiredScope", "").split())
    if wrong := [scope for scope in required if not SCOPE.fullmatch(scope)]:
        raise _wrong("RequiredScope", f"Invalid scope value: {wrong[0]}")
    skew = options.get("AllowableClockSkewMs") or "0"
    skew_ms = whole_number(skew)
    if skew_ms is None or not 0 <= skew_ms <= MAX_SKEW_MS:
        raise _wrong("AllowableClockSkewMs", f"Allowable clock skew millis must not be negative: {skew}")
    return UnsecuredTokenOptions(
        principal_claim=options.get("PrincipalClaimName") or "sub",
        scope_claim=options.get("ScopeClaimName") or "scope",
        required_scope=required,
        clock_skew_ms=skew_ms,
    )


def _wrong(option: str, problem: str) -> ConfigError:
    return ConfigError(f"sasl.jaas.config: {UNSECURED_PREFIX}{option}: {problem}", name="sasl.jaas.config")
