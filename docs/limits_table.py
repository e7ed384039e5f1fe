"""The sections of docs/limits.md. The numbers are in the options and constants that the rows name."""

from __future__ import annotations

from collections.abc import Mapping

from docs.limit import Limit
from docs.limits_of_groups import GROUPS_OF_CONSUMERS, SHARE_GROUPS, TRANSACTIONAL
from docs.limits_of_nodes import NODES
from docs.limits_of_requests import CONNECTIONS, REQUESTS, SESSIONS
from docs.limits_of_topics import RECORDS, TOPICS_AND_PARTITIONS

SECTIONS: Mapping[str, tuple[Limit, ...]] = {
    "Connections and frames": CONNECTIONS,
    "Requests": REQUESTS,
    "Topics and partitions": TOPICS_AND_PARTITIONS,
    "Groups": GROUPS_OF_CONSUMERS,
    "Transactions": TRANSACTIONAL,
    "Share groups": SHARE_GROUPS,
    "Fetch and share sessions": SESSIONS,
    "Records": RECORDS,
    "Brokers and controllers": NODES,
}
