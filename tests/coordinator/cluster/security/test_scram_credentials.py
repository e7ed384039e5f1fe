"""Tests AlterUserScramCredentials and DescribeUserScramCredentials."""

from __future__ import annotations

import hashlib

import pytest

from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.security.scram_credentials import (
    UserScramCredentials,
    alter_user_scram_credentials,
    rejected_alteration,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.metadata_records.security import RemoveUserScramCredentialRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from tests.coordinator.cluster import given

SHA_256, SHA_512 = 1, 2
SALT = b"the salt"
PASSWORD = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)


def upsertion(name: str = "alice", mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=PASSWORD
    )


def deletion(name: str = "alice", mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(image: Image, *alterations: ScramCredentialDeletion | ScramCredentialUpsertion) -> dict[str, int]:
    """Sends the alterations, and returns the code of each user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in alterations if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in alterations if isinstance(one, ScramCredentialUpsertion)],
    )
    decided = given.decide(alter_user_scram_credentials, image, request)
    given.apply(image, decided.records)
    return {result.user: result.error_code for result in decided.answer.results}


def described(image: Image, *users: str) -> dict[str, tuple[int, list[int]]]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
    credentials = UserScramCredentials(image, request)
    results = [result for user in credentials.users if (result := credentials.describe(user)) is not None]
    return {
        result.user: (result.error_code, [info.mechanism for info in result.credential_infos]) for result in results
    }


def test_a_user_who_is_deleted_during_a_request_for_all_users_is_left_out() -> None:
    image = given.image()
    assert alter(image, upsertion()) == {"alice": ErrorCode.NONE}
    credentials = UserScramCredentials(image, DescribeUserScramCredentialsRequest(users=None))
    assert credentials.users == ["alice"]
    alter(image, ScramCredentialDeletion(name="alice", mechanism=SHA_256))
    assert credentials.describe("alice") is None


def test_a_credential_is_kept_as_keys_and_not_as_a_password() -> None:
    image = given.image()
    assert alter(image, upsertion()) == {"alice": ErrorCode.NONE}
    record = image.scram_credentials.find("alice", SHA_256)
    assert record is not None
    assert (record.salt, record.iterations) == (SALT, 4096)
    assert PASSWORD not in (record.stored_key, record.server_key)


def test_the_keys_are_those_that_format_makes_of_the_same_password() -> None:
    from coordinator.cluster.scram import scram_record

    image = given.image()
    alter(image, upsertion())
    formatted = scram_record("SCRAM-SHA-256=[name=alice,password=secret,iterations=4096]", lambda: SALT)
    assert image.scram_credentials.find("alice", SHA_256) == formatted


def test_each_mechanism_of_a_user_is_described_and_deleted_for_itself() -> None:
    image = given.image()
    alter(image, upsertion(mechanism=SHA_512))
    alter(image, upsertion(mechanism=SHA_256))
    assert described(image) == {"alice": (ErrorCode.NONE, [SHA_256, SHA_512])}
    assert alter(image, deletion(mechanism=SHA_256)) == {"alice": ErrorCode.NONE}
    assert described(image, "alice") == {"alice": (ErrorCode.NONE, [SHA_512])}


def test_a_user_without_a_credential_or_named_twice_is_not_described() -> None:
    image = given.image()
    alter(image, upsertion())
    assert described(image, "bob") == {"bob": (ErrorCode.RESOURCE_NOT_FOUND, [])}
    assert described(image, "alice", "alice") == {"alice": (ErrorCode.DUPLICATE_RESOURCE, [])}


@pytest.mark.parametrize(
    ("alteration", "code"),
    [
        (upsertion(name=""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion(name="bob"), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_an_alteration_that_makes_no_sense_changes_nothing(
    alteration: ScramCredentialDeletion | ScramCredentialUpsertion, code: ErrorCode
) -> None:
    image = given.image()
    assert alter(image, alteration) == {alteration.name: code}
    assert not list(image.scram_credentials)


def test_a_user_is_altered_once_in_a_request() -> None:
    image = given.image()
    twice = {"alice": ErrorCode.DUPLICATE_RESOURCE, "bob": ErrorCode.NONE}
    assert alter(image, upsertion(), upsertion(mechanism=SHA_512), upsertion("bob")) == twice
    assert described(image) == {"bob": (ErrorCode.NONE, [SHA_256])}
    assert alter(image, deletion("bob"), upsertion("bob")) == {"bob": ErrorCode.DUPLICATE_RESOURCE}


def test_an_old_metadata_version_holds_no_credentials() -> None:
    image = given.image(FeatureLevelRecord(name=METADATA_VERSION, feature_level=10))
    assert alter(image, upsertion()) == {"alice": ErrorCode.UNSUPPORTED_VERSION}


def test_a_request_that_is_refused_is_refused_by_user() -> None:
    request = AlterUserScramCredentialsRequest(deletions=[deletion("bob")], upsertions=[upsertion(), upsertion()])
    refused = rejected_alteration(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert [result.user for result in refused.results] == ["alice", "bob"]
    assert {result.error_code for result in refused.results} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_a_deleted_credential_is_gone_from_the_image() -> None:
    image = given.image()
    alter(image, upsertion())
    image.apply(RemoveUserScramCredentialRecord(name="alice", mechanism=SHA_256))
    assert described(image) == {}
