"""Options of this node: its id and rack, its data directories, the metadata log, and the defaults of new topics."""

from __future__ import annotations

from protocol.config import BOOLEAN, INT, LIST, LONG, STRING, Config, option


class NodeOptions(Config):
    """Options of this node: its id and rack, its data directories, the metadata log, and the defaults of new topics."""

    node_id = option("node.id", INT, 1, at_least=0, importance="high", doc="Id of this node, unique in the cluster.")
    broker_id = option(
        "broker.id", INT, -1, importance="high", doc=("Older name of node.id; if both are set, they must be equal.")
    )
    odradek_profile = option(
        "odradek.profile",
        STRING,
        "production",
        one_of=("dev", "production", "test"),
        doc="dev lowers a replication factor that is too large for a single-node cluster; production rejects it, as "
        "Apache Kafka does. test is dev that also allows odradek.control.listener. `odradek run` without a file of "
        "options is dev.",
    )
    broker_rack = option(
        "broker.rack",
        STRING,
        None,
        doc="Rack of this broker, for rack-aware assignment and for clients that read from the nearest replica.",
    )
    log_dir = option(
        "log.dir",
        LIST,
        ("data",),
        may_be_empty=False,
        importance="high",
        doc="Log directory if log.dirs is not set.",
    )
    log_dirs = option(
        "log.dirs",
        LIST,
        None,
        may_be_empty=False,
        importance="high",
        doc="Log directories; a new partition goes to the directory with the fewest partitions.",
    )
    metadata_log_dir = option(
        "metadata.log.dir",
        STRING,
        None,
        importance="high",
        doc="Directory of the metadata log; the first of log.dirs unless set.",
    )
    metadata_log_segment_bytes = option(
        "metadata.log.segment.bytes",
        INT,
        1_073_741_824,
        at_least=8_388_608,
        importance="high",
        doc="Size at which a segment of the metadata log rolls.",
    )
    metadata_log_segment_ms = option(
        "metadata.log.segment.ms",
        LONG,
        604_800_000,
        importance="high",
        doc="Age at which a segment of the metadata log rolls.",
    )
    metadata_log_max_record_bytes_between_snapshots = option(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20_971_520,
        at_least=1,
        importance="high",
        doc="Bytes of metadata records after which a snapshot is written.",
    )
    metadata_log_max_snapshot_interval_ms = option(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        at_least=0,
        importance="high",
        doc="Time after which a snapshot is written if there are new records; 0 disables it.",
    )
    metadata_max_retention_bytes = option(
        "metadata.max.retention.bytes",
        LONG,
        104_857_600,
        importance="high",
        doc="Size of the metadata log with its snapshots above which the oldest are deleted.",
    )
    metadata_max_retention_ms = option(
        "metadata.max.retention.ms",
        LONG,
        604_800_000,
        importance="high",
        doc="Age at which old metadata segments and snapshots are deleted.",
    )
    metadata_max_idle_interval_ms = option(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        at_least=0,
        importance="low",
        doc="Time after which an idle controller appends a no-op record; 0 disables it.",
    )
    internal_metadata_log_segment_bytes = option(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        importance="low",
        internal=True,
        doc="Replaces metadata.log.segment.bytes, without its lower bound.",
    )
    auto_create_topics_enable = option(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        importance="high",
        doc="Create a topic when a client's Metadata request names it and allows auto-creation.",
    )
    delete_topic_enable = option(
        "delete.topic.enable", BOOLEAN, True, importance="high", doc="Allow topics to be deleted."
    )
    num_partitions = option(
        "num.partitions", INT, 1, at_least=1, doc="Number of partitions of a topic that is created without one."
    )
    default_replication_factor = option(
        "default.replication.factor", INT, 1, doc="Replication factor of a topic that is created without one."
    )
    quota_window_num = option(
        "quota.window.num", INT, 11, at_least=1, importance="low", doc="Number of samples that measure client quotas."
    )
    quota_window_size_seconds = option(
        "quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc=("Length of each sample that measures client quotas."),
    )
    controller_quota_window_num = option(
        "controller.quota.window.num",
        INT,
        11,
        at_least=1,
        importance="low",
        doc="Number of samples that measure the controller's quotas.",
    )
    controller_quota_window_size_seconds = option(
        "controller.quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc=("Length of each sample that measures the controller's quotas."),
    )

    @property
    def lowers_replication_factors(self) -> bool:
        """True if a replication factor that is too large for a single-node cluster is lowered."""
        return self.odradek_profile != "production"
