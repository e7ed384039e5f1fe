"""Tests the image as Testcontainers' modules start it: the steps of their scripts, in a folder that stands for its
root."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from odradek.testing.guard import GuardedDirectory
from odradek.testing.ports import ReservedPort
from tests.interop.processes import ROOT

pytestmark = pytest.mark.odradek_only

RUNNING = r"Transitioning from RECOVERY to RUNNING"
KRAFT = {
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
}
COMMON = {
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str(2**63 - 1),
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
FORMAT = "kafka-storage format --ignore-formatted -t {id} -c /etc/kafka/kafka.properties"
NO_ZOOKEEPER = "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure"
ADVERTISE = "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{client},BROKER://localhost:{broker}"
CONFLUENT = ["/etc/confluent/docker/configure", "/etc/confluent/docker/launch"]
SETTINGS = ". /etc/confluent/docker/bash-config"


class Module(NamedTuple):
    """A module: the environment that it sets, the lines of its script, and the line that it waits for."""

    environment: Mapping[str, str]
    script: list[str]
    waits_for: str
    shell: str = ""
    """The shell that runs its script; without it, the script is executed itself."""


MODULES = {
    "java": Module(
        {**COMMON, **KRAFT, "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}, [ADVERTISE, "/etc/kafka/docker/run "], RUNNING
    ),
    "dotnet": Module({**COMMON, **KRAFT}, [ADVERTISE, "exec /etc/kafka/docker/run"], RUNNING),
    "go": Module(
        {
            **COMMON,
            **KRAFT,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_REST_BOOTSTRAP_SERVERS": "PLAINTEXT://0.0.0.0:9093",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        [
            "source /etc/confluent/docker/bash-config",
            ADVERTISE,
            NO_ZOOKEEPER,
            "echo '" + FORMAT.format(id='"$(kafka-storage random-uuid)"') + "' >> /etc/confluent/docker/configure",
            "echo '' > /etc/confluent/docker/ensure",
            *CONFLUENT,
        ],
        RUNNING,
        "bash ",
    ),
    "python-kraft": Module(
        {
            **COMMON,
            **KRAFT,
            "CLUSTER_ID": "q83vEjRWeJCrze8SNFZ4kA==",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        [
            NO_ZOOKEEPER,
            "echo '" + FORMAT.format(id="q83vEjRWeJCrze8SNFZ4kA==") + "' >> /etc/confluent/docker/configure",
            ADVERTISE,
            SETTINGS,
            *CONFLUENT,
        ],
        r"Kafka Server started",
        "sh ",
    ),
    "python-zookeeper": Module(
        {**COMMON, "KAFKA_BROKER_ID": "1"},
        [
            "echo 'clientPort=2181' > zookeeper.properties",
            "zookeeper-server-start zookeeper.properties &",
            "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'",
            ADVERTISE,
            SETTINGS,
            *CONFLUENT,
        ],
        r"\[KafkaServer id=\d+\] started",
        "sh ",
    ),
    "node": Module(
        {
            **COMMON,
            **KRAFT,
            "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        [ADVERTISE, "/etc/confluent/docker/run "],
        r"^ready ",
    ),
}
OFTEN = ("java",)
CASES = [pytest.param(name, marks=() if name in OFTEN else (pytest.mark.examples,)) for name in MODULES]


class Image:
    """The image's files under a folder, in which its absolute paths refer to that folder."""

    def __init__(self, home: GuardedDirectory) -> None:
        self._home = home
        self._root = home.path / "root"
        scripts = self._root / "etc" / "confluent" / "docker"
        shutil.copytree(ROOT / "docker" / "testcontainers", scripts)
        shutil.copy(ROOT / "docker" / "entrypoint.sh", self._root)
        for file in (*scripts.iterdir(), self._root / "entrypoint.sh"):
            file.write_text(self.here(file.read_text()))
        (self._root / "etc" / "kafka" / "docker").mkdir(parents=True)
        (self._root / "etc" / "kafka" / "docker" / "run").symlink_to(scripts / "run")
        self._programs = self._root / "bin"
        self._programs.mkdir()
        for name in ("kafka-storage", "zookeeper-server-start"):
            (self._programs / name).symlink_to(scripts / name)
        self._executable("bin/odradek", f'exec {sys.executable} -P -m odradek "$@"')
        self.ports = {name: ReservedPort() for name in ("client", "broker", "controller")}

    def here(self, text: str) -> str:
        return re.sub(r"(?<![\w.])/etc/(confluent|kafka)\b", rf"{self._root}/etc/\1", text)

    def start(self, module: Module) -> IO[bytes]:
        """Starts a container as the module does, and then copies its script there; returns its output."""
        numbers = {name: port.number for name, port in self.ports.items()}
        listeners = ",".join(
            f"{name}://0.0.0.0:{numbers[port]}"
            for name, port in (("PLAINTEXT", "client"), ("BROKER", "broker"), ("CONTROLLER", "controller"))
            if name in module.environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]
        )
        environment = {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "KAFKA_LOG_DIRS": str(self._home.path / "data"),
            "KAFKA_LISTENERS": listeners,
            **{name: value.format(**numbers) for name, value in module.environment.items()},
        }
        script = self._root / "start.sh"
        command = f"while [ ! -f {script} ]; do sleep 0.1; done; {module.shell}{script}"
        with (self._home.path / "log").open("wb") as log:
            process = self._home.start([str(self._root / "entrypoint.sh"), "sh", "-c", command], environment, log)
        lines = "\n".join(line.format(**numbers) if line is ADVERTISE else self.here(line) for line in module.script)
        self._executable("start.sh", lines, "/bin/bash")
        assert process.stdout is not None
        return process.stdout

    def _executable(self, name: str, text: str, shell: str = "/bin/sh") -> None:
        """Creates a script atomically, so that it can't be run before it is complete."""
        made = self._root / f"{name}.new"
        made.write_text(f"#!{shell}\n{text}\n")
        made.chmod(0o755)
        made.rename(self._root / name)

    @property
    def log(self) -> str:
        return (self._home.path / "log").read_text()


@pytest.fixture
def image() -> Iterator[Image]:
    home = GuardedDirectory()
    image = Image(home)
    yield image
    home.close()
    for port in image.ports.values():
        port.release()


@pytest.mark.parametrize("name", CASES)
def test_a_module_starts_the_image(image: Image, name: str) -> None:
    with image.start(MODULES[name]) as output:
        printed: list[str] = []
        for line in output:
            printed.append(line.decode())
            if re.search(MODULES[name].waits_for, printed[-1]):
                break
        else:
            pytest.fail(f"it ended:\n{''.join(printed)}\n{image.log}")
        address = f"localhost:{image.ports['client'].number}"
        cluster = AdminClient({"bootstrap.servers": address}).list_topics(timeout=30)
        assert [f"{broker.host}:{broker.port}" for broker in cluster.brokers.values()] == [address]
        expected = MODULES[name].environment.get("CLUSTER_ID", cluster.cluster_id)
        assert cluster.cluster_id == expected


def test_the_files_are_where_the_image_has_them() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    allowed = (ROOT / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
    for line in (
        "COPY docker/entrypoint.sh docker/healthy.py /opt/odradek/",
        "COPY --chown=1001:1001 docker/testcontainers /etc/confluent/docker",
        'ENTRYPOINT ["/opt/odradek/entrypoint.sh"]',
    ):
        assert line in dockerfile
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", dockerfile, re.MULTILINE)
    assert {f"!{source}" for sources in copied for source in sources.split()} == set(allowed) - {"*"}
    for file in ("kafka-storage", "zookeeper-server-start", "run"):
        assert f"/etc/confluent/docker/{file}" in dockerfile
    executable = [*(ROOT / "docker" / "testcontainers").iterdir(), ROOT / "docker" / "entrypoint.sh"]
    assert {file.name for file in executable if not file.stat().st_mode & 0o111} == {"bash-config"}
