"""Options of OAUTHBEARER: the issuer of accepted tokens, and the claims that they must have.

Source: org.apache.kafka.common.config.SaslConfigs.
"""

from __future__ import annotations

from typing import Final

from protocol.config import CLASS, INT, LIST, LONG, STRING, Config, option

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
OAUTH_MODULE: Final = f"{PACKAGE}OAuthBearerLoginModule"
UNSECURED_HANDLER: Final = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
JWT_VALIDATORS: Final = (f"{PACKAGE}DefaultJwtValidator", f"{PACKAGE}BrokerJwtValidator")
SIGNED_HANDLERS: Final = (
    f"{PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)


class OAuthOptions(Config):
    """Options of OAUTHBEARER tokens."""

    sasl_server_callback_handler_class = option(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        doc="Class that authenticates clients. Java classes are not loaded: OAUTHBEARER accepts the names of Kafka's "
        "own classes, OAuthBearerValidatorCallbackHandler (the default) for signed tokens and "
        "OAuthBearerUnsecuredValidatorCallbackHandler for unsigned tokens, which everybody can make.",
    )
    sasl_oauthbearer_jwks_endpoint_url = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        doc="URL of the issuer's public keys (JWKS): http, https, or file. A file is read at the start.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3_600_000,
        importance="low",
        doc="Interval between two fetches of the keys. A token with an unknown key id causes an earlier fetch.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        importance="low",
        doc="First pause after a failed fetch; it doubles with each further failure.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        importance="low",
        doc="Time after which a failed fetch is not retried until the next refresh.",
    )
    sasl_oauthbearer_clock_skew_seconds = option(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        importance="low",
        doc="Maximum difference between the issuer's clock and this broker's.",
    )
    sasl_oauthbearer_expected_audience = option(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        importance="high",
        doc="Accepted audiences: a token's aud claim must contain one of them. If none are set, tokens with an "
        "audience are rejected.",
    )
    sasl_oauthbearer_expected_issuer = option(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        importance="high",
        doc="Required issuer: the iss claim of tokens.",
    )
    sasl_oauthbearer_scope_claim_name = option(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        importance="low",
        doc="Name of the claim with a token's scopes.",
    )
    sasl_oauthbearer_sub_claim_name = option(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        importance="low",
        doc="Name of the claim with the client's user name.",
    )
    sasl_oauthbearer_jwt_validator_class = option(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        JWT_VALIDATORS[0],
        doc="Class that validates signed tokens. Java classes are not loaded: the names of Kafka's own classes are "
        "accepted, and all validate alike here.",
    )
