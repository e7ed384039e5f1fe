"""ZooKeeper: the ensemble in which clients and tools of Kafka 0.8 to 1.1 look for this cluster (docs/zookeeper.md)."""

from __future__ import annotations

from protocol.config import BOOLEAN, INT, PASSWORD, STRING, Config, option


class ZookeeperOptions(Config):
    """ZooKeeper: the ensemble in which clients and tools of Kafka 0.8 to 1.1 look for this cluster (docs/zookeeper.md).
    The metadata log stays the only truth."""

    zookeeper_connect = option(
        "zookeeper.connect",
        STRING,
        None,
        importance="high",
        doc="Servers of Apache ZooKeeper, host:port,host:port, and a path below which everything is: /kafka. This "
        "broker shows itself and its topics there, and takes the inputs of old tools. Needs odradek[zookeeper].",
    )
    zookeeper_session_timeout_ms = option(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        at_least=1,
        importance="high",
        doc="Time after which ZooKeeper takes a silent broker for gone.",
    )
    zookeeper_connection_timeout_ms = option(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        importance="high",
        doc="How long a start waits for ZooKeeper; zookeeper.session.timeout.ms unless set.",
    )
    zookeeper_set_acl = option(
        "zookeeper.set.acl",
        BOOLEAN,
        False,
        importance="high",
        doc="Make znodes that everybody may read, and whoever has odradek.zookeeper.digest may change.",
    )
    broker_id_generation_enable = option(
        "broker.id.generation.enable",
        BOOLEAN,
        False,
        doc="Have ZooKeeper (zookeeper.connect) number a broker whose configuration has neither node.id nor broker.id, "
        "or broker.id=-1. Its log directories keep the number.",
    )
    reserved_broker_max_id = option(
        "reserved.broker.max.id",
        INT,
        1_000,
        at_least=0,
        doc="Largest id that can be configured where ids are generated: those follow it.",
    )
    odradek_zookeeper_digest = option(
        "odradek.zookeeper.digest",
        PASSWORD,
        None,
        importance="low",
        doc="user:password with which the session is authenticated (ZooKeeper's scheme digest).",
    )
    odradek_zookeeper_broker_version = option(
        "odradek.zookeeper.broker.version",
        INT,
        2,
        at_least=1,
        at_most=5,
        importance="low",
        doc="Version of the JSON in /brokers/ids: clients of Kafka 0.9.0.0 fail on more than 2; 3 adds the rack, 4 the "
        "security protocols of listeners, 5 features.",
    )
