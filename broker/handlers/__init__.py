"""One file per API; this table is the only list of them, and dispatch, ApiVersions and the docs derive from it."""

from __future__ import annotations

from broker.handlers import (
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_for_leader_epoch,
    produce,
    unregister_broker,
    update_features,
)

APIS = tuple(
    module.API
    for module in (
        produce,
        fetch,
        list_offsets,
        metadata,
        init_producer_id,
        api_versions,
        create_topics,
        delete_topics,
        delete_records,
        offset_for_leader_epoch,
        describe_configs,
        alter_configs,
        alter_replica_log_dirs,
        describe_log_dirs,
        create_partitions,
        elect_leaders,
        incremental_alter_configs,
        alter_partition_reassignments,
        list_partition_reassignments,
        describe_quorum,
        update_features,
        describe_cluster,
        describe_producers,
        unregister_broker,
        list_config_resources,
        describe_topic_partitions,
    )
)
