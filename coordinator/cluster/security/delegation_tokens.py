"""Decides on delegation tokens: creates, renews, expires and describes them (KIP-48, KIP-373).

The metadata log has a token's owner and times, but not its key (`token_keys.py`). Principals are texts here, as in
records: User:alice.

Source: org.apache.kafka.controller.DelegationTokenControlManager, kafka.server.DelegationTokenManager.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Final

from coordinator.cluster.image import Image
from coordinator.cluster.options import TokenRules
from coordinator.cluster.record import ClusterResult
from coordinator.cluster.rejections import MAX_RECORDS
from coordinator.cluster.security.token_keys import token_key
from coordinator.engine.result import Result, Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
)
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from protocol.metadata_records.security import DelegationTokenRecord, RemoveDelegationTokenRecord
from protocol.types import Buffer, Uuid, uuid_to_text

TOKEN_METADATA_VERSION: Final = 14
"""3.6-IV2, from which the metadata log may have tokens."""

MAX_MS: Final = (1 << 63) - 1


def principal(kind: str, name: str) -> str:
    """Returns a principal in the form of records."""
    return f"{kind}:{name}"


def kind_and_name(text: str) -> tuple[str, str]:
    """Returns the type and the name of a principal in a record."""
    kind, _, name = text.partition(":")
    return kind, name


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    """Returns the owner of a new token: the requester, unless the request names another principal."""
    if not request.owner_principal_name:
        return requester
    return principal(request.owner_principal_type or "", request.owner_principal_name)


def has_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """True once a token has expired."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def create_delegation_token(
    image: Image,
    request: CreateDelegationTokenRequest,
    ticket: Ticket[CreateDelegationTokenResponse],
    requester: str,
    options: TokenRules,
    now_ms: int,
    new_uuid: Callable[[], Uuid],
) -> ClusterResult:
    """Returns the decision that creates a token for its owner. The caller has checked that the requester may create
    tokens of another owner.
    """
    owner = owner_of(request, requester)
    disabled = _disabled(image, options)
    if disabled or options.secret_key is None:
        return answered(ticket, created(disabled, owner, requester))
    lifetime_ms = options.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = min(now_ms + lifetime_ms, MAX_MS)
    record = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=[principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=max_ms,
        expiration_timestamp=min(max_ms, now_ms + options.expiry_time_ms),
        token_id=uuid_to_text(new_uuid()),
    )
    response = created(ErrorCode.NONE, owner, requester)
    response.issue_timestamp_ms = record.issue_timestamp
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.max_timestamp_ms = record.max_timestamp
    response.token_id, response.hmac = record.token_id, token_key(options.secret_key, record.token_id)
    return answered(ticket, response, [record])


def created(code: ErrorCode, owner: str, requester: str, timestamp_ms: int = 0) -> CreateDelegationTokenResponse:
    """Returns a response without a token. With an error, brokers return −1 for its times, controllers 0."""
    (kind, name), (requester_kind, requester_name) = kind_and_name(owner), kind_and_name(requester)
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=timestamp_ms,
        expiry_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        token_id="",
        hmac=b"",
    )


def renew_delegation_token(
    image: Image,
    request: RenewDelegationTokenRequest,
    ticket: Ticket[RenewDelegationTokenResponse],
    requester: str,
    options: TokenRules,
    now_ms: int,
) -> ClusterResult:
    """Returns the decision that extends a token, up to its maximum lifetime."""
    try:
        token = _of_key(image, request.hmac, options)
        _check_lives(token, now_ms)
        _check_asker(token, requester)
    except KafkaError as error:
        return answered(ticket, RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=0))
    period_ms = options.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _until(token, now_ms + period_ms)
    expires_ms = renewed.expiration_timestamp
    return answered(ticket, RenewDelegationTokenResponse(error_code=0, expiry_timestamp_ms=expires_ms), [renewed])


def expire_delegation_token(
    image: Image,
    request: ExpireDelegationTokenRequest,
    ticket: Ticket[ExpireDelegationTokenResponse],
    requester: str,
    options: TokenRules,
    now_ms: int,
) -> ClusterResult:
    """Returns the decision that sets the time when a token expires; a negative time removes it at once."""
    try:
        token = _of_key(image, request.hmac, options)
        _check_asker(token, requester)
        if request.expiry_time_period_ms < 0:
            removed = RemoveDelegationTokenRecord(token_id=token.token_id)
            return answered(ticket, ExpireDelegationTokenResponse(error_code=0, expiry_timestamp_ms=now_ms), [removed])
        _check_lives(token, now_ms)
    except KafkaError as error:
        return answered(ticket, ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=0))
    ending = _until(token, now_ms + request.expiry_time_period_ms)
    expires_ms = ending.expiration_timestamp
    return answered(ticket, ExpireDelegationTokenResponse(error_code=0, expiry_timestamp_ms=expires_ms), [ending])


def _disabled(image: Image, options: TokenRules) -> ErrorCode:
    if options.secret_key is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.UNSUPPORTED_VERSION if image.metadata_version < TOKEN_METADATA_VERSION else ErrorCode.NONE


def _of_key(image: Image, key: Buffer, options: TokenRules) -> DelegationTokenRecord:
    """Returns the token with this key. Raises KafkaError."""
    if (disabled := _disabled(image, options)) or options.secret_key is None:
        raise KafkaError(disabled)
    token = image.delegation_tokens.of_key(options.secret_key, bytes(key))
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_lives(token: DelegationTokenRecord, now_ms: int) -> None:
    if has_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_asker(token: DelegationTokenRecord, requester: str) -> None:
    if requester not in (token.owner, *token.renewers):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _until(token: DelegationTokenRecord, expires_ms: int) -> DelegationTokenRecord:
    """Returns the record of a token that expires at another time, within its maximum lifetime."""
    changed = copy(token)
    changed.expiration_timestamp = min(token.max_timestamp, expires_ms)
    return changed


def expire_tokens(image: Image, now_ms: int) -> tuple[ClusterResult, bool]:
    """Returns the decision that removes expired tokens, and True if more are left."""
    expired = [token.token_id for token in image.delegation_tokens if has_expired(token, now_ms)]
    records = [RemoveDelegationTokenRecord(token_id=token_id) for token_id in expired[:MAX_RECORDS]]
    return Result(records), len(expired) > MAX_RECORDS


def is_described(
    request: DescribeDelegationTokenRequest, requester: str, may: Callable[[DelegationTokenRecord], bool]
) -> Callable[[DelegationTokenRecord], bool]:
    """Returns the request's filter of tokens: those of the named owners, or of all owners, that the requester may see,
    as owner, requester or renewer, or if `may` allows it."""
    named = None
    if request.owners is not None:
        named = {principal(owner.principal_type, owner.principal_name) for owner in request.owners}

    def passes(token: DelegationTokenRecord) -> bool:
        concerned = _concerned(token)
        return (named is None or not named.isdisjoint(concerned)) and (requester in concerned or may(token))

    return passes


def _concerned(token: DelegationTokenRecord) -> tuple[str, ...]:
    return (token.owner, token.requester, *token.renewers)


def described(token: DelegationTokenRecord, secret_key: str) -> DescribedDelegationToken:
    """Returns a token as DescribeDelegationToken returns it, with its key."""
    (kind, name), (requester_kind, requester_name) = kind_and_name(token.owner), kind_and_name(token.requester)
    renewers = map(kind_and_name, token.renewers)
    return DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_key(secret_key, token.token_id),
        renewers=[DescribedDelegationTokenRenewer(principal_type=one, principal_name=two) for one, two in renewers],
    )
