"""Keys of share partitions, as Java reads them."""

from __future__ import annotations

import pytest

from broker.handlers.find_coordinator import is_share_partition

TOPIC_ID = "A" * 22


@pytest.mark.parametrize("partition", ["0", "-1", "+1", "007", "2147483647", "-2147483648"])
@pytest.mark.parametrize("group", ["g", "a:b", "\u00a0"])
def test_a_group_a_topic_id_and_a_partition(group: str, partition: str) -> None:
    assert is_share_partition(f"{group}:{TOPIC_ID}:{partition}")


@pytest.mark.parametrize(
    "key",
    [
        *("", ":", "::", "g", f"g:{TOPIC_ID}", f":{TOPIC_ID}:0", f" \0:{TOPIC_ID}:0", "g:short:0", f"g:{TOPIC_ID}:x"),
        *(f"g:{TOPIC_ID}:", f"g:{TOPIC_ID}:0:0", f"g:{TOPIC_ID}:2147483648", f"g:{TOPIC_ID}:{'9' * 30_000}"),
        ":" * 30_000,
    ],
)
def test_anything_else_is_none(key: str) -> None:
    assert not is_share_partition(key)
