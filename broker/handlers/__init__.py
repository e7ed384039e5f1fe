"""One file per API; this table is the only list of them, and dispatch, ApiVersions and the docs derive from it."""

from __future__ import annotations

from broker.handlers import (
    api_versions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

APIS = tuple(
    module.API
    for module in (
        produce,
        fetch,
        list_offsets,
        metadata,
        api_versions,
        create_topics,
        delete_topics,
        delete_records,
        init_producer_id,
        offset_for_leader_epoch,
        describe_configs,
        describe_cluster,
        describe_producers,
        list_config_resources,
        describe_topic_partitions,
    )
)
