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
        STRING,
        None,
        "ZooKeeper servers, as host:port,host:port, and a path for all znodes, such as /kafka. This broker "
        "registers itself and its topics there, and carries out the requests that old tools write there. Needs "
        "odradek[zookeeper].",
        importance="high",
    )
    zookeeper_session_timeout_ms = option(
        INT, 18_000, "Time after which ZooKeeper considers a silent broker dead.", at_least=1, importance="high"
    )
    zookeeper_connection_timeout_ms = option(
        INT,
        None,
        "Time that a starting broker waits for ZooKeeper; zookeeper.session.timeout.ms unless set.",
        importance="high",
    )
    zookeeper_set_acl = option(
        BOOLEAN,
        False,
        "Create znodes that every client may read and only the user in odradek.zookeeper.digest may change.",
        importance="high",
    )
    broker_id_generation_enable = option(
        BOOLEAN,
        False,
        "Let ZooKeeper (zookeeper.connect) generate the id of a broker that has neither node.id nor broker.id, or "
        "broker.id=-1. The broker's log directories store the id.",
    )
    reserved_broker_max_id = option(
        INT, 1_000, "Largest id that can be configured if ids are generated; generated ids are larger.", at_least=0
    )
    odradek_zookeeper_digest = option(
        PASSWORD,
        None,
        "user:password with which the ZooKeeper session authenticates (ZooKeeper's scheme digest).",
        importance="low",
    )
    odradek_zookeeper_broker_version = option(
        INT,
        2,
        "Version of the JSON in /brokers/ids: clients of Kafka 0.9.0.0 fail if it is greater than 2. Version 3 "
        "adds the rack, 4 the security protocols of listeners, 5 features.",
        at_least=1,
        at_most=5,
        importance="low",
    )
