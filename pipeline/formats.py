"""The encodings of values that jobs decode."""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """The encoding of values."""

    BYTES = "bytes"
    JSON = "json"
    AVRO = "avro"
    CONFLUENT_AVRO = "confluent-avro"
