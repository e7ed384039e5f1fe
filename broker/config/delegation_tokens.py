"""Options of delegation tokens (KIP-48): org.apache.kafka.server.config.DelegationTokenManagerConfigs."""

from __future__ import annotations

from protocol.config import LONG, PASSWORD, Config, option


class DelegationTokenOptions(Config):
    """Tokens by which clients act for users for a while."""

    delegation_token_secret_key = option(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        doc="Secret of which the keys of delegation tokens are made: the same on every node. Without it there are no "
        "tokens.",
    )
    delegation_token_max_lifetime_ms = option(
        "delegation.token.max.lifetime.ms",
        LONG,
        604_800_000,
        at_least=1,
        doc="How long a delegation token can live, however often it is renewed.",
    )
    delegation_token_expiry_time_ms = option(
        "delegation.token.expiry.time.ms",
        LONG,
        86_400_000,
        at_least=1,
        doc="How long a delegation token lives that is not renewed, and by how much it is at most each time.",
    )
    delegation_token_expiry_check_interval_ms = option(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3_600_000,
        at_least=1,
        importance="low",
        doc="How often the controller removes delegation tokens that have expired; they are of no use before.",
    )
