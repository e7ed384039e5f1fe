"""The table of APIs of a controller's listener (kafka.server.ControllerApis), and the handlers of APIs that only a
controller answers."""

from __future__ import annotations

from broker.dispatch.api import Apis

NAMES = (
    "controller.fetch",
    "controller.vote",
    "controller.begin_quorum_epoch",
    "controller.end_quorum_epoch",
    "controller.envelope",
    "controller.fetch_snapshot",
    "controller.describe_cluster",
    "controller.broker_registration",
    "controller.broker_heartbeat",
    "controller.alter_partition",
    "controller.controller_registration",
    "controller.allocate_producer_ids",
    "controller.assign_replicas_to_dirs",
    "add_raft_voter",
    "remove_raft_voter",
    "controller.update_raft_voter",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "alter_client_quotas",
    "alter_user_scram_credentials",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_configs",
    "alter_configs",
    "sasl_authenticate",
    "create_partitions",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "describe_quorum",
    "update_features",
    "unregister_broker",
    "unregister_controller",
)

CONTROLLER_APIS = Apis("broker.handlers", NAMES)
