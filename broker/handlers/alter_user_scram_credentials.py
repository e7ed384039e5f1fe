"""AlterUserScramCredentials (51): sets and removes users' SCRAM credentials (KIP-554).

The client salts and hashes the password; the broker never receives the password.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from coordinator.cluster.security.scram_credentials import rejected_alteration
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

API = Api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    answered_by=CONTROLLER,
    authorize=whole(ALTER_CLUSTER),
    reject=rejected_alteration,
)
