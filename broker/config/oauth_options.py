"""Options of OAUTHBEARER: whose tokens are taken, and what has to be in them.

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
    """Tokens of an issuer."""

    sasl_server_callback_handler_class = option(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        doc="What validates clients of a mechanism. No class of Java is loaded; of OAUTHBEARER's the names of Kafka's "
        "own say whether tokens have to be signed (OAuthBearerValidatorCallbackHandler, which is the default here), or "
        "anybody may make them (OAuthBearerUnsecuredValidatorCallbackHandler).",
    )
    sasl_oauthbearer_jwks_endpoint_url = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        doc="URL of the public keys (JWKS) of the issuer of tokens: http, https, or file, which is read at the start.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3_600_000,
        importance="low",
        doc="How often the keys are fetched anew; a token that names another key has them fetched before.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        importance="low",
        doc="The pause after a fetch that failed; it doubles.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        importance="low",
        doc="How long a fetch that fails is repeated, before the next one is due.",
    )
    sasl_oauthbearer_clock_skew_seconds = option(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        importance="low",
        doc="By how much the issuer's clock may differ from this broker's.",
    )
    sasl_oauthbearer_expected_audience = option(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        importance="high",
        doc="Audiences (aud), one of which a token has to be for. Where none is named, a token that is for somebody is "
        "refused.",
    )
    sasl_oauthbearer_expected_issuer = option(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        importance="high",
        doc="The issuer (iss) that a token has to be of.",
    )
    sasl_oauthbearer_scope_claim_name = option(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        importance="low",
        doc="The claim of a token that has its scopes.",
    )
    sasl_oauthbearer_sub_claim_name = option(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        importance="low",
        doc="The claim of a token that says who its client is.",
    )
    sasl_oauthbearer_jwt_validator_class = option(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        JWT_VALIDATORS[0],
        doc="What checks signed tokens; classes of Java are not loaded, so only Kafka's own, which mean the same here.",
    )
