"""Apache Kafka's own JUnit suites: their classes, and the class path that they run with."""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from bench.jars import APACHE_TOOLS, JARS, locked, resolve
from tests.interop.processes import run

HERE = Path(__file__).parent
JAVA = HERE / "java"


IS_TEST = re.compile(r"/(?!Abstract)\w+Test\.class$")


class Suite(NamedTuple):
    """The classes of a jar that start a cluster."""

    name: str
    jar: str
    """The Maven artifact. Its jar of tests has the classes."""
    marks: tuple[bytes, ...]
    """A class that refers to one of these names starts a cluster. The jar's other classes are unit tests."""


SUITES = (
    Suite("clients", "kafka-clients-integration-tests", (b"ClusterTest", b"ClusterTemplate")),
    Suite("tools", "kafka-tools", (b"ClusterTest", b"ClusterTemplate", b"EmbeddedKafkaCluster")),
    Suite("streams", "kafka-streams-integration-tests", (b"EmbeddedKafkaCluster",)),
)


@cache
def jars() -> Path:
    return resolve(f"apache-suites-{APACHE_TOOLS}", HERE / "pom.xml", f"-Dkafka.version={APACHE_TOOLS}")


def classes(suite: Suite) -> list[str]:
    """Returns the names of the suite's classes, in the order of their names."""
    with ZipFile(jars() / f"{suite.jar}-{APACHE_TOOLS}-test.jar") as jar:
        files = [name for name in jar.namelist() if IS_TEST.search(name)]
        found = [name for name in files if any(mark in jar.read(name) for mark in suite.marks)]
    return sorted(name.removesuffix(".class").replace("/", ".") for name in found)


def class_path(*, of_processes: bool) -> str:
    """Returns the class path: with the classes that start processes of Odradek, or with Apache Kafka's own cluster."""
    folder = compiled()
    first = [folder / "shadow"] if of_processes else []
    return ":".join(map(str, [*first, folder / "common", f"{jars()}/*"]))


@cache
def compiled() -> Path:
    """Returns the folder of the compiled Java sources. `shadow` takes the place of Apache Kafka's classes."""
    sources = sorted(path for path in JAVA.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = JARS / f"apache-suites-{digest}"
    with locked(folder.name):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            programs = [str(path) for path in sources if path.suffix == ".java"]
            run(["javac", "-nowarn", "-cp", f"{jars()}/*", "-d", str(made / "common"), *programs])
            shutil.copytree(JAVA / "META-INF", made / "common" / "META-INF")
            (made / "shadow").mkdir()
            (made / "common" / "org").rename(made / "shadow" / "org")
            made.rename(folder)
    return folder
