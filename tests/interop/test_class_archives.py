"""The archives of classes that make Java start faster: it maps classes of Apache Kafka from them."""

from __future__ import annotations

import pytest

from bench.jars import APACHE_KAFKA, APACHE_TOOLS
from tests.interop import jvm
from tests.interop.processes import run


@pytest.mark.parametrize(
    ("version", "tool", "word", "loaded"),
    [
        (APACHE_KAFKA, "kafka-storage", "random-uuid", "org.apache.kafka.common.Uuid"),
        (APACHE_TOOLS, "kafka-topics", "--version", "org.apache.kafka.tools.TopicCommand"),
    ],
)
def test_classes_are_mapped(version: str, tool: str, word: str, loaded: str) -> None:
    command = jvm.java(jvm.classpath_of(version), jvm.TOOLS[tool], word, flags=("-Xlog:class+load",))
    assert f"{loaded} source: shared objects file (top)\n" in run(command).stdout.decode()


def test_a_class_path_of_its_own_has_no_archive() -> None:
    assert "SharedArchiveFile" not in " ".join(jvm.java("other.jar", "Other"))
