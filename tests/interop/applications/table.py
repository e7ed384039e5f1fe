"""The applications that copy or count the records of a topic, by name, and the programs that run them."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.jars import JARS, locked, resolve
from tests.interop import node
from tests.interop.processes import CACHE, run

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
INSTALL_TIMEOUT_S = 900
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class Application(NamedTuple):
    """A program with a state that must outlive kills of the program and of the broker.

    Its arguments are the bootstrap server, a folder for its state, the topic that it reads, and the one that it writes.
    """

    name: str
    command: Callable[[], list[str]]
    counts: bool
    """True if the output is the number of records of the key so far; false if it is a copy of each record."""
    exactly_once: bool


@cache
def python(lock: str = "requirements") -> str:
    """Returns a Python with the frameworks of LOCK.lock, in a virtual environment of their own: they need other
    versions of clients.
    """
    file = HERE / f"{lock}.lock"
    folder = CACHE / f"applications-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    with locked("applications"):
        if not (folder / ".installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)])
            command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            run([*command, "--require-hashes", "--requirement", str(file)], timeout_s=INSTALL_TIMEOUT_S)
            (folder / ".installed").touch()
    return str(folder / "bin" / "python")


def in_python(program: str, lock: str = "requirements") -> Callable[[], list[str]]:
    return lambda: [python(lock), str(PROGRAMS / program)]


@cache
def node_modules() -> Path:
    return node.packages(HERE / "npm", node.LOCKED, "--ignore-scripts") / "node_modules"


def in_node(program: str) -> Callable[[], list[str]]:
    return lambda: ["env", f"NODE_PATH={node_modules()}", "node", str(PROGRAMS / program)]


@cache
def jars(name: str) -> Path:
    return resolve(f"applications-{name}", HERE / f"{name}.xml")


def in_java(program: str, name: str) -> Callable[[], list[str]]:
    """Returns the command of a program that is compiled against the jars of NAME.xml."""

    def command() -> list[str]:
        source = PROGRAMS / program
        folder = JARS / f"classes-{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
        with locked(folder.name):
            if not folder.exists():
                made = folder.with_suffix(".new")
                shutil.rmtree(made, ignore_errors=True)
                run(["javac", "-cp", f"{jars(name)}/*", "-d", str(made), str(source)])
                made.rename(folder)
        return [*JAVA, QUIET, "-cp", f"{folder}:{jars(name)}/*", source.stem]

    return command


def in_go(program: str) -> Callable[[], list[str]]:
    """Returns the command of a program in a folder of the Go module. `go` builds it only if it has changed."""

    def command() -> list[str]:
        made = CACHE / f"applications-go-{program}"
        with locked(made.name):
            run(["go", "-C", str(HERE / "go"), "build", "-o", str(made), f"./{program}"], timeout_s=INSTALL_TIMEOUT_S)
        return [str(made)]

    return command


APPLICATIONS = (
    Application("Kafka Streams", in_java("StreamsCounts.java", "apache"), counts=True, exactly_once=True),
    Application("Spring Kafka", in_java("SpringCopy.java", "spring"), counts=False, exactly_once=True),
    Application("Flink", in_java("FlinkCopy.java", "flink"), counts=False, exactly_once=True),
    Application("Pekko Connectors", in_java("PekkoCopy.java", "pekko"), counts=False, exactly_once=True),
    Application("Reactor Kafka", in_java("ReactorCopy.java", "reactor"), counts=False, exactly_once=True),
    Application("Camel", in_java("CamelCopy.java", "camel"), counts=False, exactly_once=False),
    Application("kafkajs", in_node("kafkajs_copy.js"), counts=False, exactly_once=True),
    Application("Quix Streams", in_python("quix_counts.py"), counts=True, exactly_once=True),
    Application("Faust", in_python("faust_copy.py"), counts=False, exactly_once=False),
    Application("FastStream", in_python("faststream_copy.py"), counts=False, exactly_once=False),
    Application("NestJS", in_node("nest_copy.js"), counts=False, exactly_once=False),
    Application("@platformatic/kafka", in_node("platformatic_copy.js"), counts=False, exactly_once=False),
    Application("Watermill", in_go("watermill"), counts=False, exactly_once=False),
    Application("arroyo", in_python("arroyo_copy.py", "newer"), counts=False, exactly_once=False),
    Application("Bytewax", in_python("bytewax_copy.py"), counts=False, exactly_once=False),
)
