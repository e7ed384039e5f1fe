"""Brokers of both kinds to which clients authenticate: by an issuer's tokens, by passwords, by delegation tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.config.oauth_options import OAUTH_MODULE, SIGNED_HANDLERS
from tests.broker.security.issuer import ec_key, jwk, jwks, rsa_key
from tests.interop.brokers import READY_TIMEOUT_S, ApacheKafka, Odradek
from tests.interop.processes import free_port

PREFIX = "listener.name.sasl_plaintext."
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
AUDIENCE, ISSUER = "kafka", "https://issuer.example.org"
USERS = ("alice", "bob", "carol")


def settings(keys: Path, port: int, open_port: int) -> dict[str, str]:
    """Returns the properties of either broker; `keys` is a file."""
    listeners = f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{port}"
    passwords = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN,SCRAM-SHA-256",
        f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": SIGNED_HANDLERS[0],
        f"{PREFIX}oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        f"{PREFIX}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        f"{PREFIX}plain.sasl.jaas.config": f"{PLAIN_MODULE} required {passwords};",
        f"{PREFIX}scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": "the secret of all nodes",
        "connection.failed.authentication.delay.ms": "0",
        "offsets.topic.replication.factor": "1",
    }


class OdradekWithUsers(Odradek):
    """Odradek with a listener that requires authentication, and one that doesn't."""

    def __init__(self, data: Path, keys: Path, more: Mapping[str, str] | None = None) -> None:
        super().__init__(data)
        self.port, open_port = free_port(), free_port()
        self._listen = f"127.0.0.1:{open_port}"
        self._file = data.with_name(f"{data.name}.properties")
        given = {"log.dirs": str(data), **settings(keys, self.port, open_port), **(more or {})}
        self._file.touch(0o600)
        self._file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))

    @property
    def secured(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [self.program, "run", str(self._file)]

    def start(self) -> None:
        self.launch(self.command(), r"^ready (\S+:\d+)$", READY_TIMEOUT_S)


class ApacheKafkaWithUsers(ApacheKafka):
    """Apache Kafka with the same listeners."""

    def __init__(self, data: Path, keys: Path) -> None:
        super().__init__(data)
        self.port = free_port()
        own = settings(keys, self.port, self._port)
        own["listeners"] += f",CONTROLLER://127.0.0.1:{self._controller_port}"
        own["listener.security.protocol.map"] = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        self.properties |= own

    @property
    def secured(self) -> str:
        return f"127.0.0.1:{self.port}"


def allow_files(patch: pytest.MonkeyPatch, *files: Path) -> None:
    """Allows JVMs to read keys and tokens in these files, which Apache Kafka requires in two options."""
    urls = ",".join(file.as_uri() for file in files)
    names = ("urls", urls), ("files", ",".join(map(str, files)))
    patch.setenv("JAVA_TOOL_OPTIONS", " ".join(
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{name}={value}" for name, value in names
    ))  # fmt: skip


def write_keys(folder: Path) -> Path:
    """Writes the file of the issuer's public keys."""
    file = folder / "keys.json"
    file.write_bytes(jwks(jwk(rsa_key(), "rsa"), jwk(ec_key(), "ec")))
    return file
