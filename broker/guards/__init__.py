"""The guards of handlers: what a client may not ask for is answered here, and its handler sees the rest of the request.

They stand before handlers only where there is an authorizer; without one no request meets them. What is asked for, and
in which order, is as in Apache Kafka (KafkaApis, ControllerApis). A module has the guards of APIs that are about the
same thing, each named as its API is in ApiKey. An API that is not here requires one operation on the cluster, which the
dispatcher asks for, or nothing; Fetch and Produce ask by themselves (`broker/fetch/access.py`,
`broker/produce/serve.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from broker.requests.api import Guard
from protocol.api_key import ApiKey

MODULES: Final = {
    "groups": """
        find_coordinator join_group sync_group heartbeat leave_group list_groups describe_groups delete_groups
        consumer_group_heartbeat consumer_group_describe
        """,
    "offsets": "offset_commit offset_fetch offset_delete txn_offset_commit",
    "records": "list_offsets delete_records offset_for_leader_epoch describe_producers",
    "share_groups": """
        share_group_heartbeat share_group_describe share_fetch share_acknowledge describe_share_group_offsets
        alter_share_group_offsets delete_share_group_offsets
        """,
    "share_state": """
        initialize_share_group_state read_share_group_state write_share_group_state delete_share_group_state
        read_share_group_state_summary
        """,
    "transactions": """
        init_producer_id add_partitions_to_txn add_offsets_to_txn end_txn write_txn_markers describe_transactions
        list_transactions
        """,
    "topics": "create_topics delete_topics create_partitions describe_topic_partitions metadata",
    "configs": "describe_configs alter_configs incremental_alter_configs",
    "cluster": "describe_cluster describe_log_dirs",
}
"""The guarded APIs, by the modules of this package that have their guards."""


class HandlerGuards:
    """The guards, each in a module that is imported when its API is first asked for."""

    def __init__(self) -> None:
        self._modules = {name: module for module, names in MODULES.items() for name in names.split()}

    def find(self, key: ApiKey) -> Guard | None:
        """Returns the guard of an API; None where the dispatcher asks, or the API requires nothing."""
        name = key.name.lower()
        module = self._modules.get(name)
        if module is None:
            return None
        guard: Guard = getattr(import_module(f"broker.guards.{module}"), name)
        return guard
