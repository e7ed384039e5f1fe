"""Users with SCRAM credentials (KIP-554): lists them, sets and deletes their passwords."""

from __future__ import annotations

import hashlib
import os
from typing import Final

from commands.client.cluster_client import ClusterClient
from commands.errors import explain, raise_if
from commands.printing import Row
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
NAMES: Final = {number: name for name, (number, _) in MECHANISMS.items()}
SALT_BYTES: Final = 20
ITERATIONS: Final = 8192
"""Twice Kafka's minimum; the default of Kafka's tools for SHA-512."""


async def user_rows(cluster: ClusterClient) -> list[Row]:
    """Returns a row for each user and mechanism. Raises CommandError."""
    request = DescribeUserScramCredentialsRequest(users=None)
    answer = await cluster.any(request, DescribeUserScramCredentialsResponse)
    raise_if("users", answer.error_code, answer.error_message)
    return [
        {"user": user.user, "mechanism": NAMES.get(info.mechanism, "unknown"), "iterations": info.iterations}
        for user in sorted(answer.results, key=lambda result: result.user)
        for info in sorted(user.credential_infos, key=lambda info: info.mechanism)
    ]


async def set_password(
    cluster: ClusterClient, user: str, mechanism: str, password: str, iterations: int = ITERATIONS
) -> list[Row]:
    """Gives a user a password. Returns a row with the result."""
    code, digest = MECHANISMS[mechanism]
    salt = os.urandom(SALT_BYTES)
    credential = ScramCredentialUpsertion(
        name=user,
        mechanism=code,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations),
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential])
    return await _alter(cluster, request, mechanism, "set")


async def delete_password(cluster: ClusterClient, user: str, mechanism: str) -> list[Row]:
    """Deletes a user's password. Returns a row with the result."""
    deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISMS[mechanism][0])
    request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
    return await _alter(cluster, request, mechanism, "deleted")


async def _alter(
    cluster: ClusterClient, request: AlterUserScramCredentialsRequest, mechanism: str, done: str
) -> list[Row]:
    answer = await cluster.controller(request, AlterUserScramCredentialsResponse)
    return [
        {"user": result.user, "mechanism": mechanism, "error": explain(result.error_code, result.error_message)}
        if result.error_code
        else {"user": result.user, "mechanism": mechanism, "result": done}
        for result in answer.results
    ]
