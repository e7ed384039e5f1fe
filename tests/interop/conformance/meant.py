"""The differences that are meant, each with its reason. Everything else is a bug."""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.conformance.compare import Allowed

ANYWHERE = r".*"

TRUSTED = "a v2 batch is taken by its header once the CRC is right; its records are walked only where a rule needs them"
NOT_IMITATED = "Apache Kafka fails over it (UNKNOWN_SERVER_ERROR); here it is a bad record like others"

PRODUCED: Mapping[str, tuple[Allowed, ...]] = {
    "an unknown codec": (Allowed(ANYWHERE, NOT_IMITATED),),
    "gzip that is not": (Allowed(ANYWHERE, TRUSTED),),
    "records that are noise": (Allowed(ANYWHERE, TRUSTED),),
    "a max timestamp that is not": (Allowed(r".*\.records\[0\]", TRUSTED),),
    "negative timestamps": (Allowed(r".*\.records\[0\]", TRUSTED),),
}
"""By the name of a case in test_produce.py."""

FETCHED: Mapping[str, tuple[Allowed, ...]] = {
    "a negative size": (Allowed(ANYWHERE, "Apache Kafka fails over it; here it is no bytes, or one batch at least"),),
    "a negative size in all": (Allowed(ANYWHERE, "as for a partition"),),
    "another isolation": (Allowed(ANYWHERE, "Apache Kafka fails over it; here all but read_committed is uncommitted"),),
}
"""By the name of a case in test_fetch.py."""

MEANT: tuple[Allowed, ...] = (
    Allowed(
        r"ProduceRequest .*batch_index_error_message",
        "Kafka prints a Java object before the same words",
        ours="Producer should not set timestamp type to LogAppendTime.",
    ),
)

TWICE = (Allowed(ANYWHERE, "Kafka loses all but the last of a partition's batches, and says nothing"),)
