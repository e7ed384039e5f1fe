"""TLS, users and access control of a broker under test: the options of the broker and of its clients."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from odradek.testing.control import JsonObject
from odradek.testing.errors import BrokerError

__tracebackhide__ = True

INTERNAL: Final = "INTERNAL"
"""The inter-broker listener of a broker with TLS or users. It is not advertised to clients."""

AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM_MECHANISMS)
CLUSTER_NAME: Final = "kafka-cluster"
DEFAULT_MECHANISM: Final = "SCRAM-SHA-256"

USER_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
"""Names that need no escaping in a JAAS line, which has the users of PLAIN."""

CERTIFICATE_CONFIG: Final = """\
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
subjectAltName = DNS:localhost, IP:127.0.0.1
"""
CERTIFICATE: Final = "certificate.pem"
DAYS: Final = "3650"
OPENSSL_TIMEOUT_S: Final = 60

Operation = Literal[
    "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Acl:
    """An access control entry: a user's permission for a topic, a group, a transactional id or the cluster.

    Acl(user="alice", operation="READ", topic="orders")
    """

    user: str
    """The name of a user; `*` stands for all users."""
    operation: Operation
    topic: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    cluster: bool = False
    prefixed: bool = False
    """True if the name is a prefix."""
    host: str = "*"
    allow: bool = True
    """True for an ALLOW entry, False for a DENY entry."""

    def fields(self) -> JsonObject:
        """Returns its fields for the control server. Raises ValueError unless it has exactly one resource."""
        names = {"topic": self.topic, "group": self.group, "transactional_id": self.transactional_id}
        resources: JsonObject = {kind: name for kind, name in names.items() if name is not None}
        if self.cluster:
            resources["cluster"] = CLUSTER_NAME
        if len(resources) != 1:
            raise ValueError(f"{self}: give one of topic, group, transactional_id and cluster")
        ((kind, name),) = resources.items()
        return {
            "principal": f"User:{self.user}",
            "resource_type": kind,
            "name": name,
            "pattern_type": "prefixed" if self.prefixed else "literal",
            "operation": self.operation.lower(),
            "permission": "allow" if self.allow else "deny",
            "host": self.host,
        }


@dataclass(frozen=True)
class Security:
    """A broker's TLS, users and access control entries."""

    tls: bool = False
    users: Mapping[str, str] | None = None
    acls: Sequence[Acl] | None = None

    def check(self) -> None:
        """Raises ValueError for contradicting settings."""
        if self.acls is not None and not self.users:
            raise ValueError("acls: needs users=; without users every client is anonymous")
        for name in self.users or ():
            if USER_NAME.fullmatch(name) is None:
                raise ValueError(f"users: {name!r}: a name has letters, digits, and the signs . _ -")
        for acl in self.acls or ():
            acl.fields()

    @property
    def is_open(self) -> bool:
        """True if clients need neither TLS nor a password."""
        return not self.tls and self.users is None

    @property
    def protocol(self) -> str:
        """Returns the security protocol of clients, which is also the listener's name."""
        if self.users is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def settings(self, address: str, internal_address: str, keystore: Path) -> dict[str, str]:
        """Returns the broker's options."""
        if self.is_open:
            return {"listeners": f"PLAINTEXT://{address}"}
        settings = {
            "listeners": f"{self.protocol}://{address},{INTERNAL}://{internal_address}",
            "listener.security.protocol.map": f"{self.protocol}:{self.protocol},{INTERNAL}:PLAINTEXT",
            "inter.broker.listener.name": INTERNAL,
        }
        if self.tls:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keystore)}
        if self.users is not None:
            settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            settings[f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config"] = _jaas(self.users)
        if self.acls is not None:
            settings |= {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
        return settings

    def scram_users(self) -> list[JsonObject]:
        """Returns the SCRAM users for the control server; PLAIN users are in the options."""
        return [
            {"user": name, "password": password, "mechanism": mechanism}
            for name, password in (self.users or {}).items()
            for mechanism in SCRAM_MECHANISMS
        ]

    def client_config(self, user: str | None, mechanism: str, certificate: Path) -> dict[str, str]:
        """Returns the options of clients, with librdkafka's names, most of which Java shares. Raises ValueError for an
        unknown user or mechanism."""
        config = {"security.protocol": self.protocol}
        if self.tls:
            config["ssl.ca.location"] = str(certificate)
        if self.users is None:
            if user is not None:
                raise ValueError(f"user {user!r}: this broker has no users; it was made without users=")
            return config
        name = next(iter(self.users), "") if user is None else user
        if name not in self.users:
            raise ValueError(f"user {name!r}: this broker has {', '.join(self.users) or 'none'}")
        if mechanism not in MECHANISMS:
            raise ValueError(f"mechanism {mechanism!r}: expected one of {', '.join(MECHANISMS)}")
        return {**config, "sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": self.users[name]}


def _jaas(users: Mapping[str, str]) -> str:
    words = [f'user_{name}="{_quoted(password)}"' for name, password in users.items()]
    return " ".join([PLAIN_MODULE, "required", *words]) + ";"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", r"\r")


def make_certificate(directory: Path) -> Path:
    """Returns a key store for localhost. Its self-signed certificate is beside it as CERTIFICATE. Raises BrokerError if
    `openssl` is missing or fails."""
    key, certificate, config, keystore = (
        directory / name for name in ("key.pem", CERTIFICATE, "certificate.cnf", "keystore.pem")
    )
    config.write_text(CERTIFICATE_CONFIG)
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS,
        "-config", str(config), "-keyout", str(key), "-out", str(certificate),
    )  # fmt: skip
    keystore.touch(0o600)
    keystore.write_text(key.read_text() + certificate.read_text())
    return keystore


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(("openssl", *arguments), check=True, capture_output=True, timeout=OPENSSL_TIMEOUT_S)
    except FileNotFoundError:
        raise BrokerError("tls=True needs the command `openssl`, which makes the certificate") from None
    except subprocess.SubprocessError as error:
        printed = getattr(error, "stderr", None) or b""
        raise BrokerError(f"openssl makes no certificate: {error}: {printed.decode(errors='replace')}") from None
