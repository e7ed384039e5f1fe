"""Options of this node: its id and rack, its data directories, the metadata log, and the defaults of new topics."""

from __future__ import annotations

from protocol.config import BOOLEAN, INT, LIST, LONG, STRING, Config, option


class NodeOptions(Config):
    """Options of this node: its id and rack, its data directories, the metadata log, and the defaults of new topics."""

    node_id = option(INT, 1, "Id of this node, unique in the cluster.", at_least=0, importance="high")
    broker_id = option(INT, -1, "Older name of node.id; if both are set, they must be equal.", importance="high")
    odradek_profile = option(
        STRING,
        "production",
        "dev lowers a replication factor that is too large for a single-node cluster; production rejects it, as "
        "Apache Kafka does. test is dev that also allows odradek.control.listener. `odradek run` without a file of "
        "options is dev.",
        one_of=("dev", "production", "test"),
    )
    broker_rack = option(
        STRING,
        None,
        "Rack of this broker, for rack-aware assignment and for clients that read from the nearest replica.",
    )
    log_dir = option(LIST, ("data",), "Log directory if log.dirs is not set.", may_be_empty=False, importance="high")
    log_dirs = option(
        LIST,
        None,
        "Log directories; a new partition goes to the directory with the fewest partitions.",
        may_be_empty=False,
        importance="high",
    )
    metadata_log_dir = option(
        STRING, None, "Directory of the metadata log; the first of log.dirs unless set.", importance="high"
    )
    metadata_log_segment_bytes = option(
        INT, 1_073_741_824, "Size at which a segment of the metadata log rolls.", at_least=8_388_608, importance="high"
    )
    metadata_log_segment_ms = option(
        LONG, 604_800_000, "Age at which a segment of the metadata log rolls.", importance="high"
    )
    metadata_log_max_record_bytes_between_snapshots = option(
        LONG, 20_971_520, "Bytes of metadata records after which a snapshot is written.", at_least=1, importance="high"
    )
    metadata_log_max_snapshot_interval_ms = option(
        LONG,
        3_600_000,
        "Time after which a snapshot is written if there are new records; 0 disables it.",
        at_least=0,
        importance="high",
    )
    metadata_max_retention_bytes = option(
        LONG,
        104_857_600,
        "Size of the metadata log with its snapshots above which the oldest are deleted.",
        importance="high",
    )
    metadata_max_retention_ms = option(
        LONG, 604_800_000, "Age at which old metadata segments and snapshots are deleted.", importance="high"
    )
    metadata_max_idle_interval_ms = option(
        INT,
        500,
        "Time after which an idle controller appends a no-op record; 0 disables it.",
        at_least=0,
        importance="low",
    )
    internal_metadata_log_segment_bytes = option(
        INT, None, "Replaces metadata.log.segment.bytes, without its lower bound.", importance="low", internal=True
    )
    auto_create_topics_enable = option(
        BOOLEAN,
        True,
        "Create a topic when a client's Metadata request names it and allows auto-creation.",
        importance="high",
    )
    delete_topic_enable = option(BOOLEAN, True, "Allow topics to be deleted.", importance="high")
    num_partitions = option(INT, 1, "Number of partitions of a topic that is created without one.", at_least=1)
    default_replication_factor = option(INT, 1, "Replication factor of a topic that is created without one.")
    quota_window_num = option(INT, 11, "Number of samples that measure client quotas.", at_least=1, importance="low")
    quota_window_size_seconds = option(
        INT, 1, "Length of each sample that measures client quotas.", at_least=1, importance="low"
    )
    controller_quota_window_num = option(
        INT, 11, "Number of samples that measure the controller's quotas.", at_least=1, importance="low"
    )
    controller_quota_window_size_seconds = option(
        INT, 1, "Length of each sample that measures the controller's quotas.", at_least=1, importance="low"
    )

    @property
    def lowers_replication_factors(self) -> bool:
        """True if a replication factor that is too large for a single-node cluster is lowered."""
        return self.odradek_profile != "production"
