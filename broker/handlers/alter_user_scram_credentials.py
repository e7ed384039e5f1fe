"""AlterUserScramCredentials (51): sets and removes users' SCRAM credentials (KIP-554).

The client salts and hashes the password; the broker never receives the password.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from coordinator.cluster.security.scram_credentials import refused_alteration
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

API = Api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    by_controller,
    authorize=whole(ALTER_CLUSTER),
    refuse=refused_alteration,
)
