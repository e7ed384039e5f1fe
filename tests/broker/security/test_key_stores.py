"""Tests key stores and trust stores: PKCS12 of openssl and keytool, errors about JKS, and changes of stores in use."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import pytest
import uvloop

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.security import ListenerOptions
from broker.security.certificates import server_context
from broker.security.key_stores import MAX_STORE_BYTES, key_store, trust_store
from broker.security.store_changes import check_stores
from client.address import Address
from client.aio import connect
from client.settings import Settings
from protocol.config import ConfigError
from protocol.distinguished_name import alternative_names
from protocol.errors import ErrorCode
from protocol.messages import incremental_alter_configs as alter
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.inprocess import InProcess
from tests.broker.security.certificates import Authority, client_context, openssl

LONG_MS = 30_000
OPTION = "listener.name.secure.ssl."
BROKER = 4


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("certificates"))
    for name, subject in (("server", "/CN=localhost"), ("renewed", "/CN=localhost"), ("alice", "/CN=alice")):
        pkcs12(made, name, subject)
    return made


def pkcs12(authority: Authority, name: str, subject: str = "/CN=localhost", password: str = "store-secret") -> Path:
    """Returns a key store in PKCS12 that openssl made."""
    pem = authority.issue(name, subject)
    store = authority.directory / f"{name}.p12"
    store.touch(0o600)
    openssl("pkcs12", "-export", "-in", str(pem), "-certfile", str(authority.certificate), "-out", str(store),
            "-passout", f"pass:{password}")  # fmt: skip
    return store


def trusted(authority: Authority) -> Path:
    """Returns a trust store in PKCS12."""
    store = authority.directory / "trust.p12"
    openssl("pkcs12", "-export", "-nokeys", "-in", str(authority.certificate), "-out", str(store),
            "-passout", "pass:trust-secret")  # fmt: skip
    return store


def stored(authority: Authority, name: str = "server", **more: str) -> ListenerOptions:
    return ListenerOptions.parse({
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(authority.directory / f"{name}.p12"),
        "ssl.keystore.password": "store-secret",
        **{name.replace("_", "."): value for name, value in more.items()},
    })  # fmt: skip


def options(authority: Authority, **more: str) -> dict[str, str]:
    """Returns the options of a broker with one listener, whose stores are PKCS12."""
    return {
        "listeners": "SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "SECURE:SSL",
        "ssl.keystore.type": "PKCS12",
        f"{OPTION}keystore.location": str(authority.directory / "server.p12"),
        "ssl.keystore.password": "store-secret",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(trusted(authority)),
        "ssl.truststore.password": "trust-secret",
        "ssl.client.auth": "required",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


async def test_a_listener_with_stores_in_pkcs12_knows_its_clients(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        address = Address("localhost", broker.server.advertised[0].port)
        context = client_context(authority, authority.directory / "alice.pem")
        to = Settings(tls=context, connect_timeout_ms=LONG_MS)
        connection = await connect(address, to, SystemClock())
        answer = await connection.send(MetadataRequest(topics=None), MetadataResponse, timeout_ms=LONG_MS)
        assert answer.brokers
        (listener,) = broker.server.listeners
        assert [str(one.principal) for one in listener.connections] == ["User:CN=alice"]  # type: ignore[attr-defined]
        await connection.close()


def test_the_chain_is_in_order(authority: Authority) -> None:
    store = key_store(stored(authority))
    assert store is not None
    assert store.pem.count(b"BEGIN CERTIFICATE") == 2
    leaf = ssl.PEM_cert_to_DER_cert((authority.directory / "server.crt").read_text())
    assert store.certificate == leaf
    assert "store-secret" not in repr(store)
    assert len(alternative_names(leaf)) == 2


@pytest.mark.parametrize(("change", "problem"), [
    ({"ssl.keystore.password": "wrong"}, "it is not a PKCS12 store, or its password is wrong"),
    ({"ssl.keystore.location": "CA"}, "is PEM, and ssl.keystore.type is PKCS12; set ssl.keystore.type=PEM"),
    ({"ssl.keystore.location": "TRUST", "ssl.keystore.password": "trust-secret"}, "it has no private key with its"),
    ({"ssl.keystore.location": "JKS"}, "keytool -importkeystore -srckeystore"),
    ({"ssl.keystore.location": "JUNK"}, "it is not a PKCS12 store, or its password is wrong"),
    ({"ssl.keystore.location": "EMPTY"}, "it is not a PKCS12 store, or its password is wrong"),
])  # fmt: skip
def test_a_store_that_is_none_is_refused_and_its_password_not_told(
    tmp_path: Path, authority: Authority, change: dict[str, str], problem: str
) -> None:
    for name, content in {
        "CA": authority.certificate.read_bytes(), "TRUST": trusted(authority).read_bytes(),
        "JKS": bytes.fromhex("feedfeed00000002") + bytes(40), "JUNK": bytes(range(256)), "EMPTY": b"",
    }.items():  # fmt: skip
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_bytes(content)
    change = {name: str(tmp_path / value) if value.isupper() else value for name, value in change.items()}
    given = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(authority.directory / "server.p12"),
             "ssl.keystore.password": "store-secret", **change}  # fmt: skip
    with pytest.raises(ConfigError) as failed:
        server_context(ListenerOptions.parse(given))
    assert problem in failed.value.message
    assert "secret" not in failed.value.message


def test_pkcs12_may_be_called_jks_as_to_java(authority: Authority) -> None:
    assert key_store(stored(authority, ssl_keystore_type="JKS")) is not None


def test_a_key_store_needs_its_password_and_a_password_its_store(authority: Authority) -> None:
    where = str(authority.directory / "server.p12")
    with pytest.raises(ConfigError, match="SSL key store is specified, but key store password is not specified"):
        key_store(ListenerOptions.parse({"ssl.keystore.location": where}))
    with pytest.raises(ConfigError, match="SSL key store is not specified, but key store password is specified"):
        key_store(ListenerOptions.parse({"ssl.keystore.password": "x"}))
    with pytest.raises(ConfigError, match="SSL trust store is not specified, but trust store password is specified"):
        trust_store(ListenerOptions.parse({"ssl.truststore.password": "x"}))
    with pytest.raises(ConfigError, match="can be specified only for PEM, but trust store type is JKS"):
        trust_store(ListenerOptions.parse({"ssl.truststore.certificates": "x"}))


PROBLEMS = {
    "/dev/zero": "it is not a regular file",
    "fifo": "it is not a regular file",
    "directory": "it is not a regular file",
    "large": "it is larger than 4194304 bytes",
}


@pytest.fixture
def oddities(tmp_path: Path) -> Path:
    """Returns a directory with paths that are no stores: a FIFO without a writer, a directory, an endless file."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "directory").mkdir(0o700)
    (tmp_path / "large").touch(0o600)
    os.truncate(tmp_path / "large", MAX_STORE_BYTES + 1)
    return tmp_path


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_trust_store_is_a_regular_file_of_a_store_s_size(oddities: Path, kind: str, name: str) -> None:
    options = ListenerOptions.parse({"ssl.truststore.type": kind, "ssl.truststore.location": str(oddities / name)})
    with pytest.raises(ConfigError, match=f"^ssl.truststore.location: .*{name}: {PROBLEMS[name]}$"):
        trust_store(options)


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_key_store_is_a_regular_file_of_a_store_s_size(oddities: Path, kind: str, name: str) -> None:
    options = ListenerOptions.parse({"ssl.keystore.type": kind, "ssl.keystore.location": str(oddities / name)})
    with pytest.raises(ConfigError, match=f"^ssl.keystore.location: .*{name}: {PROBLEMS[name]}$"):
        key_store(options)


async def altered(broker: InProcess, **changes: str | None) -> tuple[int, str | None]:
    """Sets options of the listener, by their names after ssl.; returns the error and its message."""
    configs = [
        alter.AlterableConfig(name=f"{OPTION}{name.replace('_', '.')}", config_operation=0 if value else 1, value=value)
        for name, value in changes.items()
    ]
    resource = alter.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)
    request = alter.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (result,) = (await broker.client().ask(request, 1, alter.IncrementalAlterConfigsResponse)).responses
    return result.error_code, result.error_message


async def test_another_key_store_is_taken_once_it_fits(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        before = broker.server.broker.config
        for name, problem in (("missing", "No such file"), ("alice", "Keystore DistinguishedName does not match")):
            code, message = await altered(broker, keystore_location=str(authority.directory / f"{name}.p12"))
            assert code == ErrorCode.INVALID_REQUEST
            assert "Validation of dynamic config update of SSLFactory failed" in (message or "")
            assert problem in (message or "")
        code, message = await altered(broker, keystore_password="wrong")
        assert code == ErrorCode.INVALID_REQUEST
        assert "secret" not in (message or "")
        assert broker.server.broker.config is before
        location = str(authority.directory / "renewed.p12")
        assert await altered(broker, keystore_location=location) == (0, None)
        await broker.settled()
        assert broker.server.broker.config.options_of("SECURE").ssl_keystore_location == location


async def test_names_may_be_added_to_a_certificate_and_not_taken_away(tmp_path: Path, authority: Authority) -> None:
    own = Authority(tmp_path, "own")
    less = authority.issue("less")
    extensions = authority.directory / "less.ext"
    extensions.write_text("subjectAltName=DNS:localhost\n")
    certificate = authority.directory / "less.crt"
    openssl("x509", "-req", "-in", str(authority.directory / "less.csr"), "-CA", str(own.certificate),
            "-CAkey", str(tmp_path / "own.key"), "-CAcreateserial", "-days", "2", "-extfile", str(extensions),
            "-out", str(certificate))  # fmt: skip
    less.write_text((authority.directory / "less.key").read_text() + certificate.read_text())
    store = authority.directory / "less.p12"
    store.touch(0o600)
    openssl("pkcs12", "-export", "-in", str(less), "-out", str(store), "-passout", "pass:store-secret")
    async with InProcess(tmp_path / "data", options(authority)) as broker:
        code, message = await altered(broker, keystore_location=str(store))
        assert (code, "SubjectAltNames do not match" in (message or "")) == (ErrorCode.INVALID_REQUEST, True)
    async with InProcess(tmp_path / "more", options(authority, ssl_allow_san_changes="true")) as broker:
        assert (await altered(broker, keystore_location=str(store)))[0] == 0


def test_brokers_that_would_not_know_each_other_are_kept(tmp_path: Path, authority: Authority) -> None:
    """On the inter-broker listener, a certificate of an authority that the other brokers don't trust is rejected."""
    stranger = Authority(tmp_path, "stranger")
    pkcs12(stranger, "server")
    cluster = {
        **options(authority),
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "controller.listener.names": "C",
        "listener.security.protocol.map": "SECURE:SSL,C:PLAINTEXT",
        "inter.broker.listener.name": "SECURE",
    }
    option = f"{OPTION}keystore.location"

    def change_to(store: Path) -> None:
        after = BrokerConfig.parse({**cluster, option: str(store)})
        check_stores(BrokerConfig.parse(cluster), after, [option])

    with pytest.raises(ConfigError, match="with the new stores could not connect"):
        change_to(stranger.directory / "server.p12")
    change_to(authority.directory / "renewed.p12")
