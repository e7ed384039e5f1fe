"""The handlers, a module per API; `NAMES` is their only list, from which dispatch, ApiVersions and the docs derive.

A module is named as its API is in ApiKey, has its row as `API`, and is imported when it is first needed: all of them,
with their messages and decisions, take a third of the start-up time. A broker that has started imports the rest while
it is idle (broker/process/warming_up.py).
"""

from __future__ import annotations

from broker.requests.api import Apis

NAMES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "find_coordinator",
    "join_group",
    "sync_group",
    "heartbeat",
    "leave_group",
    "offset_commit",
    "offset_fetch",
    "offset_delete",
    "list_groups",
    "describe_groups",
    "delete_groups",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "initialize_share_group_state",
    "read_share_group_state",
    "write_share_group_state",
    "delete_share_group_state",
    "read_share_group_state_summary",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "txn_offset_commit",
    "write_txn_markers",
    "describe_transactions",
    "list_transactions",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "offset_for_leader_epoch",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "create_partitions",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "describe_quorum",
    "update_features",
    "describe_cluster",
    "describe_producers",
    "unregister_broker",
    "list_config_resources",
    "describe_topic_partitions",
)


APIS = Apis("broker.handlers", NAMES)
