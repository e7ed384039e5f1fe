"""Compares the records of SCRAM credentials on a command line with those that Apache Kafka's kafka-storage writes."""

from __future__ import annotations

import base64

import pytest

from coordinator.cluster.scram import scram_record
from protocol.config import ConfigError

SALT = b"2l5xx8r71t8am6pkqqz3dc9nu"


def drawn_salt() -> bytes:
    return SALT


def test_a_password_is_salted_and_hashed_as_apache_kafka_does() -> None:
    record = scram_record("SCRAM-SHA-256=[name=alice,password=alice-secret]", drawn_salt)
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("alice", 1, SALT, 4096)
    assert list(record.stored_key[:8]) == [43, 256 - 17, 36, 37, 256 - 81, 108, 50, 256 - 32]
    assert list(record.server_key[:8]) == [256 - 115, 104, 98, 17, 122, 51, 256 - 13, 256 - 99]


def test_a_password_that_is_salted_already_stays_as_it_is() -> None:
    text = 'SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE="]'
    record = scram_record(text, drawn_salt)
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("bob", 2, b"7q", 8192)
    assert list(record.stored_key[:6]) == [113, 118, 256 - 93, 73, 256 - 7, 30]
    assert list(record.server_key[:6]) == [76, 97, 124, 14, 256 - 35, 256 - 18]


def test_a_salt_may_be_given_with_a_password() -> None:
    text = f"SCRAM-SHA-256=[name=alice,salt={base64.b64encode(SALT).decode()},password=alice-secret]"
    assert scram_record(text, lambda: b"another") == scram_record(
        "SCRAM-SHA-256=[name=alice,password=alice-secret]", drawn_salt
    )


@pytest.mark.parametrize(("text", "problem"), [
    ("SCRAM-SHA-256", "Failed to find equals sign"),
    ("SCRAM-SHA-1=[name=a,password=b]", "The add-scram mechanism SCRAM-SHA-1 is not supported"),
    ("SCRAM-SHA-256=name=a,password=b]", r"start with \["),
    ("SCRAM-SHA-256=[name=a,password=b", r"end with \]"),
    ("SCRAM-SHA-256=[]", "No equals sign"),
    ("SCRAM-SHA-256=[password=b]", "You must supply 'name'"),
    ("SCRAM-SHA-256=[name=,password=b]", "You must supply 'name'"),
    ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
    ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "You must supply 'salt'"),
    ("SCRAM-SHA-256=[name=a,saltedpassword=Y,salt=N3E=]", "Failed to decode given saltedPassword"),
    ("SCRAM-SHA-256=[name=a,password=b,salt=N]", "Failed to decode given salt"),
    ("SCRAM-SHA-256=[name=a,password=b,iterations=x]", "Failed to parse iterations count: x"),
    ("SCRAM-SHA-256=[name=a,password=b,iterations=4095]", "must be >= 4096"),
    ("SCRAM-SHA-256=[name=a,password=b,iterations=16385]", "must be <= 16384"),
    ("SCRAM-SHA-256=[name=a,password=b,colour=red]", "Unknown SCRAM configurations: colour"),
])  # fmt: skip
def test_an_argument_that_is_no_credential_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        scram_record(text, drawn_salt)


def test_no_error_repeats_a_password() -> None:
    for text in ("hunter2", "SCRAM-SHA-256=hunter2]", "SCRAM-SHA-256=[name=a,password=b,hunter2]"):
        with pytest.raises(ConfigError) as raised:
            scram_record(text, drawn_salt)
        assert "hunter2" not in str(raised.value)
