"""The clients of the security matrix in other languages: processes that read commands line by line, and Apache Kafka's
tools."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.broker.security.certificates import openssl
from tests.interop import jvm, node
from tests.interop.clients.secured import PATIENCE_S, Access, Refused
from tests.interop.processes import LineClient, run

SECURITY = "org.apache.kafka.common.security"
LOGINS = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
STORE_PASSWORD = "store-secret"
OWN_HANDLER = "TokenFromFile"
"""The class that reads a token. Java clients before KIP-768 have none, and later clients need a library for theirs."""


def pkcs12(certificate: Path) -> Path:
    """Returns a PKCS12 store with a key and its certificate, because Java 2.8 accepts PEM keys only with a password."""
    store = certificate.with_suffix(".p12")
    if not store.exists():
        openssl("pkcs12", "-export", "-in", str(certificate), "-out", str(store), "-passout", f"pass:{STORE_PASSWORD}")
    return store


def java_settings(access: Access, *, by_handler: bool = False) -> dict[str, str]:
    """Returns the settings of a Java client."""
    given = {"security.protocol": access.protocol}
    if access.has_tls:
        given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(access.authority)}
    if access.certificate is not None:
        given |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(pkcs12(access.certificate))}
        given |= {"ssl.keystore.password": STORE_PASSWORD}
    if access.mechanism:
        module = f"{SECURITY}.{LOGINS[access.mechanism]} required"
        shown = f' username="{access.user}" password="{access.password}"' if access.password else ""
        given |= {"sasl.mechanism": access.mechanism, "sasl.jaas.config": f"{module}{shown};"}
    if access.token is not None and by_handler:
        jaas = f'{SECURITY}.{LOGINS["OAUTHBEARER"]} required file="{access.token}" user="{access.user}";'
        given |= {"sasl.login.callback.handler.class": OWN_HANDLER, "sasl.jaas.config": jaas}
    elif access.token is not None:
        handler = f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
        given |= {"sasl.login.callback.handler.class": handler}
        given |= {"sasl.oauthbearer.token.endpoint.url": access.token.as_uri()}
    return given


def properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def kafkajs_settings(access: Access) -> str:
    """Returns the settings of kafkajs as JSON; client.js makes a provider of a token."""
    given: dict[str, Any] = {}
    if access.has_tls:
        given["ssl"] = {"ca": [access.authority.read_text()]}
    if access.certificate is not None:
        given["ssl"] |= {"key": access.certificate.read_text(), "cert": access.certificate.read_text()}
    if access.token is not None:
        given["sasl"] = {"mechanism": access.mechanism.lower(), "token": access.token_text()}
    elif access.mechanism:
        mechanism = access.mechanism.lower()
        given["sasl"] = {"mechanism": mechanism, "username": access.user, "password": access.password}
    return json.dumps(given)


class ByLines:
    """A process that reads commands line by line, with its settings in a file."""

    def __init__(self, start: Callable[[], LineClient], settings: Callable[[Access], str], folder: Path) -> None:
        self._start = start
        self._settings = settings
        self._folder = folder
        self._numbers = itertools.count()
        self._client: LineClient | None = None

    def _ask(self, access: Access, command: str, lines: Sequence[str] = ()) -> list[str]:
        file = self._folder / f"{next(self._numbers)}.settings"
        file.write_text(self._settings(access))
        if self._client is None or not self._client.is_running:
            self._client = self._start()
        try:
            return self._client.ask(f"{command} config={file}", lines)
        except AssertionError as error:
            raise Refused(str(error).partition(" failed: ")[2] or str(error)) from None

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        words = f"produce {access.address} {topic} 0 {len(values)}"
        self._ask(access, words, [value.decode() for value in values])

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        answer = self._ask(access, f"consume {access.address} {topic} 0 0 {count}")
        values = [line.split(" ", 2)[2].encode() for line in answer]
        if len(values) < count:
            raise Refused("no record in time")
        return values

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def java(version: str, folder: Path, *, by_handler: bool = False) -> ByLines:
    """Returns the Java client of one version."""
    limits = {"max.block.ms": str(PATIENCE_S * 1000)}
    beside = (f"{OWN_HANDLER}.java",) if by_handler else ()
    return ByLines(
        lambda: jvm.line_client(version, folder / f"java-{version}.log", *beside),
        lambda access: properties({**java_settings(access, by_handler=by_handler), **limits}),
        folder,
    )


def kafkajs(folder: Path) -> ByLines:
    return ByLines(lambda: node.line_client(folder / "kafkajs.log"), kafkajs_settings, folder)


class ApacheTools:
    """kafka-console-producer and kafka-console-consumer, which may exit with 0 and report the error only in their
    logs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def _run(self, name: str, access: Access, *arguments: str, stdin: bytes = b"") -> bytes:
        file = self._folder / f"tool-{next(self._numbers)}.properties"
        file.write_text(properties(java_settings(access)))
        words = ["--bootstrap-server", access.address, "--command-config", str(file), *arguments]
        ended = run(jvm.command_of(name, *words), stdin=stdin, check=False)
        output = ended.stderr.decode(errors="replace") + ended.stdout.decode(errors="replace")
        if exception := re.search(r"org\.apache\.kafka\.common\.errors\.(\w+: .*)", output):
            raise Refused("\n".join((exception[1], *re.findall(r"^Caused by: .*", output, re.MULTILINE))))
        if ended.returncode:
            raise Refused(output)
        return ended.stdout

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        lines = b"".join(value + b"\n" for value in values)
        limit = f"max.block.ms={PATIENCE_S * 1000}"
        self._run("kafka-console-producer", access, "--topic", topic, "--command-property", limit, stdin=lines)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        words = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", str(count)]
        wait = ["--timeout-ms", str(PATIENCE_S * 1000)]
        return self._run("kafka-console-consumer", access, *words, *wait).splitlines()

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
