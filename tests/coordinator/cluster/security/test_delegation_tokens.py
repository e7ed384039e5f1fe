"""Tests CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken, and the expiry of tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from itertools import count

import pytest

from coordinator.cluster.duties import Duties
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.options import NO_TOKENS, ClusterOptions, TokenRules
from coordinator.cluster.security.delegation_tokens import (
    create_delegation_token,
    described,
    expire_delegation_token,
    is_described,
    renew_delegation_token,
)
from protocol.errors import ErrorCode
from protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from protocol.metadata_records.security import DelegationTokenRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.types import Uuid
from tests.coordinator.cluster import given

NOW = 1_000_000
OPTIONS = TokenRules("the secret", max_lifetime_ms=10_000, expiry_time_ms=4_000, expiry_check_interval_ms=500)
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
NOT_FOUND = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
NUMBERS = count(1)


def uuid() -> Uuid:
    return next(NUMBERS).to_bytes(16, "big")


def create(
    image: Image, requester: str = ALICE, *renewers: str, lifetime_ms: int = -1, owner: str | None = None,
    now_ms: int = NOW, options: TokenRules = OPTIONS,
) -> CreateDelegationTokenResponse:  # fmt: skip
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )
    decided = given.decide(create_delegation_token, image, request, requester, options, now_ms, uuid)
    given.apply(image, decided.records)
    return decided.answer


def renew(
    image: Image, key: bytes, requester: str = ALICE, period_ms: int = -1, now_ms: int = NOW,
    options: TokenRules = OPTIONS,
) -> RenewDelegationTokenResponse:  # fmt: skip
    request = RenewDelegationTokenRequest(hmac=key, renew_period_ms=period_ms)
    decided = given.decide(renew_delegation_token, image, request, requester, options, now_ms)
    given.apply(image, decided.records)
    return decided.answer


def expire(
    image: Image, key: bytes, requester: str = ALICE, period_ms: int = -1, now_ms: int = NOW,
    options: TokenRules = OPTIONS,
) -> ExpireDelegationTokenResponse:  # fmt: skip
    request = ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=period_ms)
    decided = given.decide(expire_delegation_token, image, request, requester, options, now_ms)
    given.apply(image, decided.records)
    return decided.answer


def the_token(image: Image) -> DelegationTokenRecord:
    (token,) = image.delegation_tokens
    return token


def test_a_token_is_its_requesters_and_its_key_is_in_no_record() -> None:
    image = given.image()
    response = create(image, ALICE, "bob")
    token = the_token(image)
    assert (token.owner, token.requester, token.renewers) == (ALICE, ALICE, [BOB])
    assert (token.issue_timestamp, token.expiration_timestamp, token.max_timestamp) == (NOW, NOW + 4_000, NOW + 10_000)
    assert (response.error_code, response.token_id) == (0, token.token_id)
    assert response.hmac == hmac.digest(b"the secret", token.token_id.encode(), hashlib.sha512)
    assert not hasattr(token, "hmac")
    assert (response.principal_type, response.principal_name) == ("User", "alice")


def test_a_token_may_be_made_for_another() -> None:
    image = given.image()
    response = create(image, ALICE, owner="carol")
    assert (the_token(image).owner, the_token(image).requester) == (CAROL, ALICE)
    assert (response.principal_name, response.token_requester_principal_name) == ("carol", "alice")


@pytest.mark.parametrize(("asked_ms", "max_ms", "expires_ms"), [
    (-1, 10_000, 4_000), (0, 10_000, 4_000), (20_000, 10_000, 4_000), (5_000, 5_000, 4_000), (100, 100, 100),
])  # fmt: skip
def test_nobody_asks_for_a_longer_life_than_there_is(asked_ms: int, max_ms: int, expires_ms: int) -> None:
    response = create(given.image(), lifetime_ms=asked_ms)
    assert (response.max_timestamp_ms, response.expiry_timestamp_ms) == (NOW + max_ms, NOW + expires_ms)


def test_times_end_with_the_numbers() -> None:
    forever = TokenRules("s", max_lifetime_ms=(1 << 63) - 1, expiry_time_ms=(1 << 63) - 1)
    response = create(given.image(), options=forever)
    assert response.max_timestamp_ms == response.expiry_timestamp_ms == (1 << 63) - 1


def test_owner_and_renewers_put_off_the_end_within_the_longest_life() -> None:
    image = given.image()
    key = create(image, ALICE, "bob").hmac
    assert renew(image, key, BOB, now_ms=NOW + 1_000).expiry_timestamp_ms == NOW + 5_000
    assert renew(image, key, ALICE, 500, NOW + 2_000).expiry_timestamp_ms == NOW + 2_500
    assert renew(image, key, ALICE, 1, NOW + 2_000).expiry_timestamp_ms == NOW + 2_001
    assert renew(image, key, ALICE, now_ms=NOW + 2_000).expiry_timestamp_ms == NOW + 6_000
    assert renew(image, key, ALICE, now_ms=NOW + 2_500).expiry_timestamp_ms == NOW + 6_500
    assert renew(image, key, ALICE, 9_999_999, NOW + 6_500).expiry_timestamp_ms == NOW + 10_000
    assert the_token(image).expiration_timestamp == NOW + 10_000
    assert the_token(image).renewers == [BOB]


def test_a_token_is_not_renewed_by_others_nor_late() -> None:
    image = given.image()
    key = create(image, ALICE, "bob", owner="carol").hmac
    assert renew(image, key, ALICE).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(image, key, CAROL, now_ms=NOW + 4_000).error_code == ErrorCode.NONE
    assert renew(image, key, ALICE, now_ms=NOW + 8_001).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    for wrong in (b"", key[:-1], key + b"\0", bytes(64)):
        assert renew(image, wrong, CAROL).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_ends_at_once_or_when_it_is_told_to() -> None:
    image = given.image()
    key = create(image, ALICE, "bob").hmac
    assert expire(image, key, CAROL).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(image, key, BOB, 9_000).expiry_timestamp_ms == NOW + 9_000
    assert expire(image, key, BOB, (1 << 63) - 1).expiry_timestamp_ms == NOW + 10_000
    assert expire(image, key, BOB, 0).expiry_timestamp_ms == NOW
    assert expire(image, key, BOB, 5, NOW + 1).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(image, key, BOB, -1, NOW + 1).expiry_timestamp_ms == NOW + 1
    assert not list(image.delegation_tokens)
    assert expire(image, key, BOB).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_without_a_secret_there_are_no_tokens() -> None:
    image = given.image()
    key = create(image).hmac
    assert create(image, options=NO_TOKENS).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert renew(image, key, options=NO_TOKENS).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert expire(image, key, options=NO_TOKENS).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert "secret" not in repr(ClusterOptions(tokens=OPTIONS))


def test_an_old_metadata_log_has_no_tokens() -> None:
    image = given.image(FeatureLevelRecord(name=METADATA_VERSION, feature_level=13))
    assert create(image).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert renew(image, b"").error_code == expire(image, b"").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_another_secret_makes_keys_of_old_tokens_worthless() -> None:
    image = given.image()
    key = create(image).hmac
    assert renew(image, key, options=OPTIONS._replace(secret_key="new")).error_code == 62


def test_tokens_are_told_to_whom_they_concern() -> None:
    image = given.image()
    create(image, ALICE, "bob")
    create(image, ALICE, owner="carol")
    create(image, BOB)

    def owners_of(requester: str, *owners: str, everything: bool = False, may: bool = False) -> list[str]:
        named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
        request = DescribeDelegationTokenRequest(owners=None if everything else named)
        return [
            token.owner for token in filter(is_described(request, requester, lambda _: may), image.delegation_tokens)
        ]

    assert owners_of(ALICE, everything=True) == [ALICE, CAROL]
    assert owners_of(BOB, everything=True) == [ALICE, BOB]
    assert owners_of(CAROL, everything=True) == [CAROL]
    assert owners_of("User:eve", everything=True) == []
    assert owners_of("User:eve", everything=True, may=True) == [ALICE, CAROL, BOB]
    assert owners_of(ALICE) == []
    assert owners_of(BOB, "bob") == [ALICE, BOB]
    assert owners_of(BOB, "carol") == []
    answer = described(next(iter(image.delegation_tokens)), "the secret")
    assert answer.hmac == hmac.digest(b"the secret", answer.token_id.encode(), hashlib.sha512)
    assert [(one.principal_type, one.principal_name) for one in answer.renewers] == [("User", "bob")]


def test_the_controller_removes_tokens_that_have_expired() -> None:
    image = given.image()
    now_ms = NOW
    options = ClusterOptions(tokens=OPTIONS, auto_leader_rebalance_enable=False)
    duties = Duties(options, given.RULES, given.sessions(image), lambda: now_ms)
    duties.begin(0)
    create(image)
    living = create(image, now_ms=NOW + 1_000).token_id
    duty = duties.due(image, 500)
    assert duty is not None
    assert duty.name == "remove expired delegation tokens"
    assert not duty.decide(image, 500)[0].records
    now_ms = NOW + 4_001
    given.apply(image, duty.decide(image, 1_000)[0].records)
    assert the_token(image).token_id == living


def test_a_controller_without_a_secret_removes_none() -> None:
    options = ClusterOptions(auto_leader_rebalance_enable=False, unclean_leader_election_interval_ms=0)
    duties = Duties(options, given.RULES, given.sessions(given.image()), lambda: NOW)
    duties.begin(0)
    assert duties.next_ms(given.image()) is None


def test_the_work_to_find_a_token_does_not_grow_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    image = given.image()
    keys = [create(image).hmac for _ in range(100)]
    renew(image, keys[0])
    done = counted(monkeypatch)
    assert renew(image, keys[50]).error_code == 0
    assert renew(image, b"of no token").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert expire(image, keys[70], period_ms=-1).error_code == 0
    assert expire(image, keys[70]).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert len(done) < 4


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that grows by each key that is made or compared."""
    done: list[str] = []

    def watch(name: str, function: Callable[..., object]) -> None:
        def counting(*arguments: object) -> object:
            done.append(name)
            return function(*arguments)

        monkeypatch.setattr(hmac, function.__name__, counting)

    watch("made", hmac.digest)
    watch("compared", hmac.compare_digest)
    return done


def test_a_token_is_found_by_its_key_whatever_has_become_of_the_others() -> None:
    image = given.image()
    first, second = create(image).hmac, create(image).hmac
    assert renew(image, first).error_code == 0
    third = create(image).hmac
    expire(image, first, period_ms=-1)
    assert [renew(image, key).error_code for key in (first, second, third)] == [NOT_FOUND, 0, 0]
    assert [renew(image.copy(), key).error_code for key in (first, second, third)] == [NOT_FOUND, 0, 0]
    assert renew(image, third, options=TokenRules("another secret", 1, 1, 1)).error_code == NOT_FOUND
