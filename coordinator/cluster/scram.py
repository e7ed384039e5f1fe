"""Parses SCRAM credentials in the format of `--add-scram`: MECHANISM=[name=…,password=…] (KIP-900).

Source: Kafka's ScramParser and ScramFormatter; RFC 5802.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.config import ConfigError
from protocol.metadata_records.security import UserScramCredentialRecord
from protocol.sasl.scram import DIGESTS, MAX_ITERATIONS, MIN_ITERATIONS


class Mechanism(NamedTuple):
    """A SCRAM mechanism: its number in records, and its hash."""

    code: int
    digest: str


MECHANISMS: Final = {name: Mechanism(code, digest) for code, (name, digest) in enumerate(DIGESTS.items(), 1)}

FIELDS: Final = ("name", "password", "iterations", "salt", "saltedpassword")


def scram_record(argument: str, new_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    """Returns the record of a credential; `new_salt` draws the salt if the argument has none. Raises ConfigError, whose
    message never contains a password.
    """
    name, equals, text = argument.strip().partition("=")
    if not equals:
        raise ConfigError("Failed to find equals sign in SCRAM argument: MECHANISM=[name=NAME,password=PASSWORD]")
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        raise ConfigError(f"The add-scram mechanism {name} is not supported.")
    if not text.startswith("["):
        raise ConfigError("Expected configuration string to start with [")
    if not text.endswith("]"):
        raise ConfigError("Expected configuration string to end with ]")
    return _record(name, mechanism, _fields(text[1:-1]), new_salt)


def _fields(text: str) -> dict[str, str]:
    fields = {}
    for component in text.split(","):
        name, equals, value = component.partition("=")
        if not equals:
            raise ConfigError("No equals sign found in SCRAM component: a comma separates name=value pairs")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        fields[name] = value[1:-1] if quoted else value
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise ConfigError(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    if not fields.get("name"):
        raise ConfigError("You must supply 'name' to add-scram")
    return fields


def _record(
    mechanism_name: str, mechanism: Mechanism, fields: dict[str, str], new_salt: Callable[[], bytes]
) -> UserScramCredentialRecord:
    iterations = _iterations(fields.get("iterations", str(MIN_ITERATIONS)), mechanism_name)
    password, salted_text = fields.get("password"), fields.get("saltedpassword")
    if password is None and salted_text is None:
        raise ConfigError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and "salt" not in fields:
        raise ConfigError("You must supply 'salt' with 'saltedpassword' to add-scram")
    salt = _decoded(fields["salt"], "salt") if "salt" in fields else new_salt()
    if password is None:
        salted = _decoded(salted_text or "", "saltedPassword")
    else:
        salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    return UserScramCredentialRecord(
        name=fields["name"],
        mechanism=mechanism.code,
        salt=salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


def _iterations(text: str, mechanism: str) -> int:
    try:
        iterations = int(text)
    except ValueError:
        raise ConfigError(f"Failed to parse iterations count: {text}") from None
    for bound, sign, fits in (
        (MIN_ITERATIONS, ">=", iterations >= MIN_ITERATIONS),
        (MAX_ITERATIONS, "<=", iterations <= MAX_ITERATIONS),
    ):
        if not fits:
            raise ConfigError(f"The 'iterations' value must be {sign} {bound} for add-scram using {mechanism}")
    return iterations


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ConfigError(f"Failed to decode given {what}: it is not base64") from None
