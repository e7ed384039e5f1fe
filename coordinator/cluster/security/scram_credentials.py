"""Decides on AlterUserScramCredentials, and answers DescribeUserScramCredentials (KIP-554).

No answer has a key, a salt or a password. Source: Kafka's ScramControlManager and ScramImage.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import MAX_RECORDS, error_message, too_large
from coordinator.cluster.scram import MECHANISMS
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
)
from protocol.metadata_records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from protocol.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS

SCRAM_METADATA_VERSION: Final = 11
"""3.5-IV2, from which the metadata log may have credentials."""

DIGESTS: Final = {mechanism.code: mechanism.digest for mechanism in MECHANISMS.values()}
"""The hash of each mechanism, by its number."""

A = TypeVar("A", ScramCredentialDeletion, ScramCredentialUpsertion)


class Alterations:
    """The alterations of one request: at most one for each user, whatever its mechanism."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.deletions: dict[str, ScramCredentialDeletion] = {}
        self.upsertions: dict[str, ScramCredentialUpsertion] = {}
        self.errors: dict[str, KafkaError] = {}

    def delete(self, deletion: ScramCredentialDeletion) -> None:
        """Adds a deletion."""
        self._take(deletion, self.deletions, self._check_deletion)

    def upsert(self, upsertion: ScramCredentialUpsertion) -> None:
        """Adds a new or changed credential."""
        self._take(upsertion, self.upsertions, _check_upsertion)

    def _take(self, alteration: A, into: dict[str, A], check: Callable[[A], None]) -> None:
        name = alteration.name
        if name in self.errors:
            return
        try:
            if self.deletions.pop(name, None) or self.upsertions.pop(name, None):
                message = "A user credential cannot be altered twice in the same request"
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, message)
            if self._image.metadata_version < SCRAM_METADATA_VERSION:
                message = "The current metadata.version does not support SCRAM"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
            _check_user(name, alteration.mechanism)
            check(alteration)
        except KafkaError as error:
            self.errors[name] = error.detached()
        else:
            into[name] = alteration

    def _check_deletion(self, deletion: ScramCredentialDeletion) -> None:
        if self._image.scram_credentials.find(deletion.name, deletion.mechanism) is None:
            message = "Attempt to delete a user credential that does not exist"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message)


def _check_user(name: str, mechanism: int) -> None:
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in DIGESTS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _check_upsertion(upsertion: ScramCredentialUpsertion) -> None:
    if upsertion.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not upsertion.salted_password:  # Java can't make an HMAC key of an empty password
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def alter_user_scram_credentials(
    image: Image, request: AlterUserScramCredentialsRequest, ticket: Ticket[AlterUserScramCredentialsResponse]
) -> ClusterResult:
    """Returns the decision, with a result for each user. A user that is named twice gets an error."""
    alterations = Alterations(image)
    for deletion in request.deletions:
        alterations.delete(deletion)
    for upsertion in request.upsertions:
        alterations.upsert(upsertion)
    records: list[MetadataRecord] = [
        RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism)
        for deletion in alterations.deletions.values()
    ]
    records += map(_credential, alterations.upsertions.values())
    if len(records) > MAX_RECORDS:
        raise too_large()
    altered = (*alterations.deletions, *alterations.upsertions)
    results = [_altered(name, None) for name in altered]
    results += (_altered(name, error) for name, error in alterations.errors.items())
    return answered(ticket, AlterUserScramCredentialsResponse(results=results), records)


def _credential(upsertion: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    """Returns the record of a credential. The password can't be computed from its keys (RFC 5802)."""
    digest = DIGESTS[upsertion.mechanism]
    salted = bytes(upsertion.salted_password)
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=upsertion.mechanism,
        salt=bytes(upsertion.salt),
        stored_key=hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest(),
        server_key=hmac.digest(salted, b"Server Key", digest),
        iterations=upsertion.iterations,
    )


def _altered(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error_message(error))
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)


def rejected_alteration(
    request: AlterUserScramCredentialsRequest, error: KafkaError
) -> AlterUserScramCredentialsResponse:
    """Returns the response that rejects every alteration of a request."""
    users = {deletion.name for deletion in request.deletions} | {upsertion.name for upsertion in request.upsertions}
    return AlterUserScramCredentialsResponse(results=[_altered(user, error) for user in sorted(users)])


class UserScramCredentials:
    """The mechanisms of the users that a request names, or of all users with credentials."""

    def __init__(self, image: Image, request: DescribeUserScramCredentialsRequest) -> None:
        self._credentials = image.scram_credentials
        named = Counter(user.name for user in request.users or ())
        self._names_users = bool(named)
        self._counts: Mapping[str, int] = named or dict.fromkeys((record.name for record in self._credentials), 1)

    @property
    def users(self) -> list[str]:
        """Returns the users to describe, each once."""
        return list(self._counts)

    def describe(self, user: str) -> DescribeUserScramCredentialsResult | None:
        """Returns the mechanisms of a user; an error if the request names the user twice, or the user has no
        credentials. Returns None for a user whose credentials were deleted after a request for all users had begun.
        """
        found = (self._credentials.find(user, mechanism) for mechanism in sorted(DIGESTS))
        infos = [CredentialInfo(mechanism=one.mechanism, iterations=one.iterations) for one in found if one is not None]
        return _described(user, self._counts[user], infos) if infos or self._names_users else None


def _described(user: str, count: int, infos: list[CredentialInfo]) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.NONE, ""
    if count > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        infos = []
    elif not infos:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message, credential_infos=infos)
