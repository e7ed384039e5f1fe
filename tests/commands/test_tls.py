"""Tests TLS of commands: settings with the names of Java and librdkafka, and handshakes with listeners of all kinds."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop

from cli.exits import MISUSED
from client.address import Address
from client.blocking import BlockingPeers, drive
from client.clock import SystemClock
from client.pool import Peers
from commands.client.cluster_client import ClusterClient, draw
from commands.client.connecting import Destination, destination
from commands.client.links import Links
from commands.client.settings import Given, gather
from commands.client.tls import tls_context
from commands.errors import BrokerUnreachable, CommandError
from tests.broker.inprocess import InProcess
from tests.broker.security.certificates import Authority, openssl

LISTENERS = "PLAINTEXT://{0}:0,SSL://{0}:0"
OTHER_HOST = "127.0.0.2"
"""An address of this machine that is not in its certificate."""
PROFILES_NOWHERE = {"ODRADEK_PROFILES": "/nowhere/profiles.toml"}
LOGIN = 'x.PlainLoginModule required username="alice" password="alice-secret" user_alice="alice-secret";'
SASL = ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=alice", "sasl.password=alice-secret")


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def keystore(authority: Authority) -> Path:
    return authority.issue("server")


def where(*assignments: str) -> Destination:
    return destination(gather(Given(None, None, None, assignments), PROFILES_NOWHERE))


def served(directory: Path, keystore: Path, protocol: str, **options: str) -> InProcess:
    """Yields a broker whose second listener uses TLS."""
    texts = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{protocol}://127.0.0.1:0",
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": LOGIN.replace("x.", "org.apache.kafka.common.security.plain."),
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return InProcess(directory, texts)


def at(broker: InProcess, to: Destination, listener: int, host: str) -> Destination:
    """Returns the same settings for one of the broker's listeners."""
    return to._replace(bootstrap=(Address(host, broker.server.advertised[listener].port),))


async def brokers_seen(broker: InProcess, to: Destination, host: str = "127.0.0.1") -> int:
    """Returns the brokers in a cluster's metadata, requested on an event loop, and by a blocking socket in a thread."""
    there = at(broker, to, 1, host)
    counts = [await count_brokers(on_a_loop(there))]
    counts.append(await asyncio.to_thread(drive, count_brokers(BlockingPeers(there.connection, there.bootstrap))))
    assert counts[0] == counts[1]
    return counts[0]


def on_a_loop(there: Destination) -> Peers:
    return Peers(there.connection, SystemClock(), draw, there.bootstrap)


async def count_brokers(links: Links) -> int:
    async with ClusterClient(links, 30_000) as cluster:
        return len((await cluster.metadata()).brokers)


async def test_settings_of_java_and_of_librdkafka_open_the_same_listener(
    tmp_path: Path, authority: Authority, keystore: Path
) -> None:
    inline = authority.certificate.read_text().replace("\n", "\\n")
    async with served(tmp_path, keystore, "SASL_SSL") as broker:
        for trust in (
            f"ssl.truststore.location={authority.certificate}",
            f"ssl.ca.location={authority.certificate}",
            f"ssl.truststore.certificates={inline}",
            "enable.ssl.certificate.verification=false",
        ):
            assert await brokers_seen(broker, where(*SASL, trust)) == 1, trust


async def test_a_certificate_of_ones_own_is_shown(tmp_path: Path, authority: Authority, keystore: Path) -> None:
    own = authority.issue("client", "/CN=ana")
    key, certificate = own.with_suffix(".key"), own.with_suffix(".crt")
    trust = ("security.protocol=SSL", f"ssl.ca.location={authority.certificate}")
    options = {"ssl_client_auth": "required", "ssl_truststore_location": str(authority.certificate)}
    async with served(tmp_path, keystore, "SSL", **options) as broker:
        for shown in (
            (f"ssl.keystore.location={own}",),
            (f"ssl.key.location={key}", f"ssl.certificate.location={certificate}"),
            (f"ssl.key.pem={key.read_text()}", f"ssl.certificate.pem={certificate.read_text()}"),
        ):
            assert await brokers_seen(broker, where(*trust, *shown)) == 1


@pytest.mark.parametrize(
    ("assignments", "host", "listener", "advice"),
    [
        (("security.protocol=SSL",), "127.0.0.1", 1, "ssl.truststore.location"),
        (("security.protocol=PLAINTEXT",), "127.0.0.1", 1, "security.protocol must match the listener"),
        (("security.protocol=SSL", "ssl.ca.location=CA"), OTHER_HOST, 1, "ssl.endpoint.identification.algorithm"),
        (("security.protocol=SSL", "ssl.ca.location=CA"), "127.0.0.1", 0, "security.protocol must match"),
    ],
)
async def test_a_handshake_that_fails_names_the_setting_that_helps(
    tmp_path: Path,
    authority: Authority,
    keystore: Path,
    assignments: tuple[str, ...],
    host: str,
    listener: int,
    advice: str,
) -> None:
    texts = [text.replace("=CA", f"={authority.certificate}") for text in assignments]
    async with served(tmp_path, keystore, "SSL", listeners=LISTENERS.format(host)) as broker:
        there = at(broker, where(*texts), listener, host)
        with pytest.raises(BrokerUnreachable, match=advice):
            await count_brokers(on_a_loop(there))
        with pytest.raises(BrokerUnreachable, match=advice):
            await asyncio.to_thread(drive, count_brokers(BlockingPeers(there.connection, there.bootstrap)))


async def test_names_are_not_compared_where_nobody_asks_for_it(
    tmp_path: Path, authority: Authority, keystore: Path
) -> None:
    to = where("security.protocol=SSL", f"ssl.ca.location={authority.certificate}",
               "ssl.endpoint.identification.algorithm=none")  # fmt: skip
    async with served(tmp_path, keystore, "SSL", listeners=LISTENERS.format(OTHER_HOST)) as broker:
        assert await brokers_seen(broker, to, host=OTHER_HOST) == 1


def test_an_encrypted_key_needs_its_password(authority: Authority, tmp_path: Path) -> None:
    own = authority.issue("locked")
    locked = tmp_path / "locked.key"
    openssl("pkcs8", "-topk8", "-in", str(own.with_suffix(".key")), "-passout", "pass:secret", "-out", str(locked))
    texts = (
        "security.protocol=SSL",
        f"ssl.key.location={locked}",
        f"ssl.certificate.location={own.with_suffix('.crt')}",
    )
    assert isinstance(where(*texts, "ssl.key.password=secret"), Destination)
    with pytest.raises(CommandError, match=r"ssl\.keystore\.key") as refused:
        where(*texts, "ssl.key.password=no-such-secret")
    assert "no-such-secret" not in refused.value.message


def test_text_around_pem_is_passed_over(authority: Authority, tmp_path: Path) -> None:
    commented = tmp_path / "trust.pem"
    commented.write_text(f"subject=Übung\n{authority.certificate.read_text()}\n")
    assert isinstance(where("security.protocol=SSL", f"ssl.ca.location={commented}"), Destination)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("ssl.ca.location=/nowhere/ca.pem", "No such file"),
        ("ssl.truststore.type=JKS", "only PEM is supported.*keytool"),
        ("ssl.truststore.certificates=MIIB", "only PEM is supported"),
        ("ssl.enabled.protocols=TLSv1", "TLSv1 is not one of"),
        ("ssl.cipher.suites=NO_SUCH", "ssl.cipher.suites"),
        ("ssl.endpoint.identification.algorithm=http", "expected https or none or nothing"),
        ("enable.ssl.certificate.verification=no", "expected true or false"),
    ],
)
def test_what_is_no_tls_is_refused_with_its_setting(wrong: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason) as refused:
        where("security.protocol=SSL", wrong)
    assert refused.value.status == MISUSED


def test_a_key_without_its_certificate_is_refused(authority: Authority) -> None:
    key = authority.issue("alone").with_suffix(".key")
    with pytest.raises(CommandError, match="a TLS key is set but no certificate"):
        where("security.protocol=SSL", f"ssl.key.location={key}")


def test_a_context_of_a_client_trusts_nobody_unasked() -> None:
    context = tls_context(gather(Given(None, None, None, ()), PROFILES_NOWHERE))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
