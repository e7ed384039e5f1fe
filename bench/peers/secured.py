"""Brokers with security: a thousand ACLs, or TLS. They are measured beside peers without it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar, Final

from bench.jars import ONE_TIER
from bench.load import Load, Tool, ToolRun
from bench.peers.brokers import ONE_NODE, ApacheKafka, Odradek
from bench.peers.peer import ADMIN_TIMEOUT_S, PeerProcess, Unavailable, free_port, require

ENTRIES: Final = 1_000
USERS: Final = 100
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # otherwise no client could create the first entry
}
JAVA: Final = "java"
PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
"""Must be set, because Apache Kafka has defaults only if all listeners are PLAINTEXT."""


def write_entries(bootstrap: str) -> None:
    """Creates the ACLs: of a hundred users with their own topics, and of the user that runs the loads."""
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient
    from confluent_kafka.admin import ResourcePatternType as Pattern
    from confluent_kafka.admin import ResourceType as Resource

    allow, read, write = AclPermissionType.ALLOW, AclOperation.READ, AclOperation.WRITE
    entries = [
        AclBinding(Resource.TOPIC, f"topic-{at}", (Pattern.LITERAL, Pattern.PREFIXED)[at % 2],
                   f"User:user-{at % USERS}", "*", (read, write)[at // 2 % 2], allow)
        for at in range(ENTRIES)
    ]  # fmt: skip
    entries += [
        AclBinding(Resource.TOPIC, prefix, Pattern.PREFIXED, "User:ANONYMOUS", "*", AclOperation.ALL, allow)
        for prefix in ("produce", "consume", "latency")
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    for made in admin.create_acls(entries, request_timeout=ADMIN_TIMEOUT_S).values():
        made.result(ADMIN_TIMEOUT_S)


class OdradekWithEntries(Odradek):
    """Odradek with an authorizer and a thousand entries."""

    name = "odradek-acls"
    title = "Odradek, 1,000 ACLs"

    def command(self) -> list[str]:
        return [*super().command(), *(word for pair in AUTHORIZER.items() for word in ("--set", "=".join(pair)))]

    def wait_until_serving(self) -> int:
        served_ns = super().wait_until_serving()
        write_entries(self.bootstrap)
        return served_ns


class ApacheKafkaWithEntries(ApacheKafka):
    """Apache Kafka with an authorizer and a thousand entries."""

    name = "kafka-acls"
    title = f"{ApacheKafka.title}, 1,000 ACLs"

    def write_properties(self, data: Path, bootstrap: str) -> Path:
        file = super().write_properties(data, bootstrap)
        append(file, AUTHORIZER)
        return file

    def wait_until_serving(self) -> int:
        served_ns = super().wait_until_serving()
        write_entries(self.bootstrap)
        return served_ns


def append(file: Path, settings: dict[str, str]) -> None:
    """Appends properties; the last value of a name counts."""
    with file.open("a") as properties:
        properties.writelines(f"{key}={value}\n" for key, value in settings.items())


class Encrypted(PeerProcess):
    """A peer that gets its loads over TLS; it is managed through a listener without TLS."""

    ca: ClassVar[str] = "ca.pem"
    encrypted: str = ""
    """The address of the TLS listener, once the peer has started."""

    def prepare(self) -> None:
        super().prepare()
        require("openssl")
        if not (self.work / "broker.pem").exists():
            make_certificates(self.work)

    def lay_out(self) -> None:
        super().lay_out()
        self.encrypted = f"127.0.0.1:{free_port()}"

    @property
    def keys(self) -> dict[str, str]:
        """Returns the broker's options besides its listeners."""
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.work / "broker.pem")}

    def tool(self, load: Load) -> Tool:
        tool = super().tool(load)
        return tool._replace(command=lambda job: self._secured(tool, job))

    def _secured(self, tool: Tool, job: ToolRun) -> list[str]:
        """Returns the tool's command line, with TLS options in the form of its client."""
        ca = str(self.work / self.ca)
        is_java = tool.command(job)[0] == JAVA
        trusted = (
            ("ssl.truststore.type=PEM", f"ssl.truststore.location={ca}") if is_java else (f"ssl.ca.location={ca}",)
        )
        client = (*job.load.client, "security.protocol=SSL", *trusted)
        command = tool.command(job._replace(bootstrap=self.encrypted, load=job.load._replace(client=client)))
        return [word for word in command if word != ONE_TIER]  # otherwise the load would be what Java can encrypt


def make_certificates(folder: Path) -> None:
    """Creates an authority and the broker's certificate, with elliptic curves. Raises Unavailable."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650")
    names = folder / "names.cnf"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for command in (
        ("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=bench"),
        ("req", *key, "-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=localhost"),
        ("x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650",
         "-extfile", names.name, "-out", "broker.crt"),
    ):  # fmt: skip
        ended = subprocess.run(("openssl", *command), cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Unavailable(f"openssl failed: {ended.stderr[-500:]}")
    broker = folder / "broker.pem"
    broker.touch(0o600)
    broker.write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())


class OdradekWithTls(Encrypted, Odradek):
    """Odradek, with loads over TLS."""

    name = "odradek-tls"
    title = "Odradek, TLS"

    def command(self) -> list[str]:
        listeners = f"PLAINTEXT://{self.bootstrap},SSL://{self.encrypted}"
        options = {**ONE_NODE, **self.keys, "listeners": listeners}
        settings = [word for pair in options.items() for word in ("--set", "=".join(pair))]
        return [self.program, "run", "--data", str(self.data), *settings]


class ApacheKafkaWithTls(Encrypted, ApacheKafka):
    """Apache Kafka, with loads over TLS."""

    name = "kafka-tls"
    title = f"{ApacheKafka.title}, TLS"

    def write_properties(self, data: Path, bootstrap: str) -> Path:
        file = super().write_properties(data, bootstrap)
        if self.encrypted:
            plain = f"PLAINTEXT://{bootstrap}"
            file.write_text(file.read_text().replace(plain, f"{plain},SSL://{self.encrypted}"))
            append(file, {**self.keys, "listener.security.protocol.map": PROTOCOLS})
        return file
