"""Options of OAUTHBEARER: the issuer of accepted tokens, and the claims that they must have.

Source: org.apache.kafka.common.config.SaslConfigs.
"""

from __future__ import annotations

from typing import Final

from protocol.config import BOOLEAN, CLASS, INT, LIST, LONG, STRING, Config, option

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
        CLASS,
        None,
        "Class that authenticates clients. Java classes are not loaded: OAUTHBEARER accepts the names of Kafka's "
        "own classes, OAuthBearerValidatorCallbackHandler (the default) for signed tokens and "
        "OAuthBearerUnsecuredValidatorCallbackHandler for unsigned tokens, which any client can create.",
    )
    sasl_oauthbearer_jwks_endpoint_url = option(
        STRING, None, "URL of the issuer's public keys (JWKS): http, https, or file. A file is read at the start."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = option(
        LONG,
        3_600_000,
        "Interval between two fetches of the keys. A token with an unknown key id causes an earlier fetch.",
        importance="low",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = option(
        LONG, 100, "First pause after a failed fetch; it doubles with each further failure.", importance="low"
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = option(
        LONG, 10_000, "Time after which a failed fetch is not retried until the next refresh.", importance="low"
    )
    sasl_oauthbearer_clock_skew_seconds = option(
        INT, 30, "Maximum difference between the issuer's clock and this broker's.", importance="low"
    )
    sasl_oauthbearer_allow_unverified_audience = option(
        BOOLEAN, False, "Start without an expected audience, and then accept tokens for any audience."
    )
    sasl_oauthbearer_allow_unverified_issuer = option(
        BOOLEAN, False, "Start without an expected issuer, and then accept tokens of any issuer."
    )
    sasl_oauthbearer_expected_audience = option(
        LIST,
        (),
        "Accepted audiences: a token's aud claim must contain one of them.",
        importance="high",
    )
    sasl_oauthbearer_expected_issuer = option(
        STRING, None, "Required issuer: the iss claim of tokens.", importance="high"
    )
    sasl_oauthbearer_scope_claim_name = option(
        STRING, "scope", "Name of the claim with a token's scopes.", importance="low"
    )
    sasl_oauthbearer_sub_claim_name = option(
        STRING, "sub", "Name of the claim with the client's user name.", importance="low"
    )
    sasl_oauthbearer_jwt_validator_class = option(
        CLASS,
        JWT_VALIDATORS[0],
        "Class that validates signed tokens. Java classes are not loaded: the names of Kafka's own classes are "
        "accepted, and all validate alike here.",
    )
