"""Options of ZooKeeper: the ensemble through which clients and tools of Kafka 0.8 to 1.1 find this cluster
(docs/zookeeper.md).
"""

from __future__ import annotations

from protocol.config import BOOLEAN, INT, PASSWORD, STRING, Config, option


class ZookeeperOptions(Config):
    """Options of ZooKeeper: the ensemble through which clients and tools of Kafka 0.8 to 1.1 find this cluster
    (docs/zookeeper.md). The metadata log remains the only source of truth.
    """

    zookeeper_connect = option(
        "zookeeper.connect",
        STRING,
        None,
        importance="high",
        doc="ZooKeeper servers, as host:port,host:port, and a path for all znodes, such as /kafka. This broker "
        "registers itself and its topics there, and carries out the requests that old tools write there. Needs "
        "odradek[zookeeper].",
    )
    zookeeper_session_timeout_ms = option(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        at_least=1,
        importance="high",
        doc="Time after which ZooKeeper considers a silent broker dead.",
    )
    zookeeper_connection_timeout_ms = option(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        importance="high",
        doc="Time that a starting broker waits for ZooKeeper; zookeeper.session.timeout.ms unless set.",
    )
    zookeeper_set_acl = option(
        "zookeeper.set.acl",
        BOOLEAN,
        False,
        importance="high",
        doc="Create znodes that everybody may read and only the user in odradek.zookeeper.digest may change.",
    )
    broker_id_generation_enable = option(
        "broker.id.generation.enable",
        BOOLEAN,
        False,
        doc="Let ZooKeeper (zookeeper.connect) generate the id of a broker that has neither node.id nor broker.id, or "
        "broker.id=-1. The broker's log directories store the id.",
    )
    reserved_broker_max_id = option(
        "reserved.broker.max.id",
        INT,
        1_000,
        at_least=0,
        doc="Largest id that can be configured if ids are generated; generated ids are larger.",
    )
    odradek_zookeeper_digest = option(
        "odradek.zookeeper.digest",
        PASSWORD,
        None,
        importance="low",
        doc="user:password with which the ZooKeeper session authenticates (ZooKeeper's scheme digest).",
    )
    odradek_zookeeper_broker_version = option(
        "odradek.zookeeper.broker.version",
        INT,
        2,
        at_least=1,
        at_most=5,
        importance="low",
        doc="Version of the JSON in /brokers/ids: clients of Kafka 0.9.0.0 fail if it is greater than 2. Version 3 "
        "adds the rack, 4 the security protocols of listeners, 5 features.",
    )
