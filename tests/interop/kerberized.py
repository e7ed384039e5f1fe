"""A broker whose clients authenticate by tickets of a real KDC, and the settings of those clients."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from broker.config.kerberos import KERBEROS_MODULE
from tests.broker.security.certificates import Authority
from tests.interop.brokers import READY_TIMEOUT_S, Odradek
from tests.interop.processes import free_port
from tests.interop.realm import OTHER, OWN, PACKAGES, Realm

PLAINTEXT: Final = "SASL_PLAINTEXT"
SSL: Final = "SASL_SSL"
RULES: Final = ",".join([
    r"RULE:[1:$1@$0](root@.*)s/.*/nobody/",
    rf"RULE:[1:$1@$0](guest@{OTHER})s/@.*/-OTHER//L",
    r"RULE:[2:$2-$1](staff-.*)",
    "DEFAULT",
])  # fmt: skip


def login_module(keytab: Path, principal: str) -> str:
    return f'{KERBEROS_MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}";'


class KerberosBroker(Odradek):
    """A broker with a listener of each kind, and access control entries."""

    def __init__(self, data: Path, keytab: Path, authority: Authority, more: Mapping[str, str] | None = None) -> None:
        super().__init__(data)
        self.ports = {PLAINTEXT: free_port(), SSL: free_port()}
        self._file = data.with_name(f"{data.name}.properties")
        jaas = login_module(keytab, f"kafka/localhost@{OWN}")
        listeners = ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items())
        given = {
            "log.dirs": str(data),
            "listeners": listeners,
            "advertised.listeners": listeners,
            "sasl.enabled.mechanisms": "GSSAPI",
            **{f"listener.name.{name.lower()}.gssapi.sasl.jaas.config": jaas for name in self.ports},
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": RULES,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.issue("broker")),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:alice",
            "connection.failed.authentication.delay.ms": "0",
            "offsets.topic.replication.factor": "1",
            **(more or {}),
        }
        self._file.touch(0o600)
        self._file.write_text("".join(f"{key}={value}\n" for key, value in given.items()).replace("\\", "\\\\"))

    def at(self, protocol: str) -> str:
        return f"localhost:{self.ports[protocol]}"

    def command(self) -> list[str]:
        return [self.program, "run", str(self._file)]

    def start(self) -> None:
        self.launch(self.command(), r"^ready (\S+:\d+)$", READY_TIMEOUT_S)


class Place(NamedTuple):
    """A realm, a broker in it, and its users."""

    realm: Realm
    broker: KerberosBroker
    authority: Authority
    keytabs: Mapping[str, Path]

    def properties(self, user: str, protocol: str, **others: str) -> str:
        """Writes a file with the settings of a Java client."""
        file = self.realm.folder / f"{user.replace('/', '-')}.{protocol}.properties"
        settings = {
            "security.protocol": protocol,
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": login_module(self.keytabs[user], f"{user}@{OWN}"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            **{name.replace("_", "."): value for name, value in others.items()},
        }
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(file)

    def ticket(self, user: str, lifetime: str = "1h") -> Path:
        name, _, realm = user.partition("@")
        return self.realm.log_in(name, self.keytabs[user], realm or OWN, lifetime)


@contextmanager
def environment(realm: Realm) -> Iterator[None]:
    """Makes the realm the only one that this process and its children know."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        patch.setenv("KRB5CCNAME", f"FILE:{realm.folder / 'none'}")
        patch.setenv("KRB5RCACHENAME", f"file2:{realm.folder / 'replays'}")
        java = f"-Djava.security.krb5.conf={realm.config}"
        patch.setenv("JAVA_TOOL_OPTIONS", f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {java}".strip())
        yield


@contextmanager
def started_realm(folder: Path) -> Iterator[Realm]:
    """Yields a realm that this process knows. Fails if this machine lacks a part of it."""
    if importlib.util.find_spec("gssapi") is None:
        pytest.fail(f"there is no python-gssapi: apt-get install {PACKAGES}, then make setup-gssapi")
    realm = Realm(folder)
    with environment(realm):
        realm.start()
        try:
            yield realm
        finally:
            realm.stop()


@contextmanager
def started_place(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Place]:
    with started_realm(folder) as realm:
        names = ("kafka/localhost", "other/localhost", "alice", "bob", "root", "carol/staff")
        keytabs = {name: realm.add(name) for name in names}
        keytabs |= {f"{name}@{OTHER}": realm.add(name, OTHER) for name in ("guest", "stranger")}
        authority = Authority(folder)
        broker = KerberosBroker(folder / "data", keytabs["kafka/localhost"], authority, more)
        broker.start()
        try:
            yield Place(realm, broker, authority, keytabs)
        finally:
            broker.stop()
            broker.forget()
