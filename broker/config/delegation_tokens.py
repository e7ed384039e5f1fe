"""Options of delegation tokens (KIP-48): org.apache.kafka.server.config.DelegationTokenManagerConfigs."""

from __future__ import annotations

from protocol.config import LONG, PASSWORD, Config, option


class DelegationTokenOptions(Config):
    """Delegation tokens, with which clients authenticate as their owners until the tokens expire."""

    delegation_token_secret_key = option(
        PASSWORD,
        None,
        "Secret from which the keys of delegation tokens are computed, the same on every node. Without it there "
        "are no delegation tokens.",
    )
    delegation_token_max_lifetime_ms = option(
        LONG, 604_800_000, "Longest lifetime of a delegation token, with all its renewals.", at_least=1
    )
    delegation_token_expiry_time_ms = option(
        LONG,
        86_400_000,
        "Time after which a delegation token expires unless it is renewed, and longest extension by a renewal.",
        at_least=1,
    )
    delegation_token_expiry_check_interval_ms = option(
        LONG,
        3_600_000,
        "How often the controller removes expired delegation tokens; they are rejected from the moment they expire.",
        at_least=1,
        importance="low",
    )
