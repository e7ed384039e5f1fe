"""A broker with a listener for each way to connect, and its users."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from broker.config.oauth_options import OAUTH_MODULE, SIGNED_HANDLERS
from tests.broker.security import issuer
from tests.broker.security.certificates import Authority
from tests.interop.brokers import READY_TIMEOUT_S, Odradek
from tests.interop.clients.secured import Access
from tests.interop.clients.secured_librdkafka import settings as librdkafka_settings
from tests.interop.processes import free_port, run

ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
ALICE, PASSWORD = "alice", "alice-secret"
SUBJECT: Final = "CN=alice,OU=Users,O=x,C=US"
"""The subject of alice's certificate."""

AUDIENCE, ISSUER = "kafka", "https://issuer.example.org"

PROTOCOLS: Final[Mapping[str, str]] = {
    "ADMIN": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "SASL": "SASL_SSL",
    "BARE": "SASL_PLAINTEXT",
}
"""The listeners, and the protocol of each."""

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SCRAM: Final = MECHANISMS[1:3]
LOGIN: Final = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{ADMIN}" password="{ADMIN_PASSWORD}" '
    f'user_{ADMIN}="{ADMIN_PASSWORD}" user_{ALICE}="{PASSWORD}";'
)


class Certificates:
    """A trusted authority, an unknown authority, and the certificates that both have signed."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.stranger = Authority(folder, "stranger")
        subject = "/" + "/".join(reversed(SUBJECT.split(",")))
        self.broker = self.authority.issue("broker")
        self.expired_broker = self.authority.issue("expired-broker", days=-1)
        self.alice = self.authority.issue("alice", subject)
        self.expired_alice = self.authority.issue("expired-alice", subject, days=-1)
        self.strange_alice = self.stranger.issue("strange-alice", subject)


class Tokens:
    """An issuer's keys in a file, and files with tokens of alice: a valid one, and an invalid one of each kind."""

    def __init__(self, folder: Path) -> None:
        now = int(time.time())
        self.keys = folder / "keys.json"
        self.keys.write_bytes(issuer.jwks(issuer.jwk(issuer.ec_key(), "ec")))
        self.right = self._write(folder / "right.jwt")
        self.ended = self._write(folder / "ended.jwt", exp=now - 600, iat=now - 1_200)
        self.of_others = self._write(folder / "of-others.jwt", aud="others")
        self.forged = self._write(folder / "forged.jwt", key=issuer.ec_key("another"))

    def _write(self, file: Path, key: issuer.Key | None = None, **changes: Any) -> Path:
        claims = {"aud": AUDIENCE, "iss": ISSUER, **changes}
        file.write_text(issuer.token(key or issuer.ec_key(), "ec", **claims))
        return file

    @property
    def java_options(self) -> str:
        """Returns the options with which JVMs may read these files."""
        files = (self.right, self.ended, self.of_others, self.forged)
        allowed = {"urls": ",".join(file.as_uri() for file in files), "files": ",".join(map(str, files))}
        prefix = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        return " ".join(f"{prefix}.{name}={value}" for name, value in allowed.items())


class SecuredBroker(Odradek):
    """A broker with an authorizer, whose users exist before its first start."""

    def __init__(self, folder: Path, more: Mapping[str, str] | None = None) -> None:
        super().__init__(folder / "data")
        self.certificates = Certificates(folder)
        self.tokens = Tokens(folder)
        self.ports = {name: free_port() for name in PROTOCOLS}
        self._listen = f"127.0.0.1:{self.ports['ADMIN']}"
        self._file = folder / "server.properties"
        settings = {**self._settings(), **(more or {})}
        self._file.touch(0o600)
        self._file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _settings(self) -> dict[str, str]:
        made, of_listener = self.certificates, "listener.name."
        logins = {f"{of_listener}{name}.plain.sasl.jaas.config": LOGIN for name in ("admin", "sasl", "bare")}
        return {
            "log.dirs": str(self.data),
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(map(":".join, PROTOCOLS.items())),
            "inter.broker.listener.name": "ADMIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS[:3]),
            f"{of_listener}sasl.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connection.failed.authentication.delay.ms": "100",
            **logins,
            **self._of_tokens(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(made.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(made.authority.certificate),
            f"{of_listener}mutual.ssl.client.auth": "required",
            f"{of_listener}expired.ssl.keystore.location": str(made.expired_broker),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
            "offsets.topic.replication.factor": "1",
        }

    def _of_tokens(self) -> dict[str, str]:
        prefix = "listener.name.sasl.oauthbearer.sasl."
        return {
            f"{prefix}server.callback.handler.class": SIGNED_HANDLERS[0],
            f"{prefix}jaas.config": f"{OAUTH_MODULE} required;",
            f"{prefix}oauthbearer.jwks.endpoint.url": self.tokens.keys.as_uri(),
            f"{prefix}oauthbearer.expected.audience": AUDIENCE,
            f"{prefix}oauthbearer.expected.issuer": ISSUER,
        }

    def format(self) -> None:
        """Creates the SCRAM users, as an operator does before the first start."""
        users = [f"{name}=[name={ALICE},password={PASSWORD}]" for name in SCRAM]
        words = [word for user in users for word in ("--add-scram", user)]
        cluster = run([self.program, "random-uuid"]).stdout.decode().strip()
        run([self.program, "format", "-t", cluster, "-c", str(self._file), "--standalone", *words])

    def command(self) -> list[str]:
        return [self.program, "run", str(self._file)]

    def start(self) -> None:
        self.launch(self.command(), r"^ready (\S+:\d+)$", READY_TIMEOUT_S)

    def access(self, listener: str, **who: Any) -> Access:
        """Returns a client's settings for a listener; `who` replaces its credentials."""
        usual = {"authority": self.certificates.authority.certificate, "user": ALICE, "password": PASSWORD}
        return Access(f"127.0.0.1:{self.ports[listener]}", PROTOCOLS[listener], **{**usual, **who})

    def access_by_token(self, token: Path) -> Access:
        """Returns a client's settings for a token, over TLS."""
        return self.access("SASL", mechanism="OAUTHBEARER", password="", token=token)

    @property
    def admin(self) -> dict[str, Any]:
        """Returns librdkafka's settings of the super user."""
        return librdkafka_settings(self.access("ADMIN", mechanism="PLAIN", user=ADMIN, password=ADMIN_PASSWORD))
