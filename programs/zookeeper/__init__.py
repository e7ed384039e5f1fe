"""ZooKeeper, a façade beside the metadata log, for clients and tools of Kafka 0.8 to 1.1 (docs/zookeeper.md).

The znodes are made from the metadata image, never the other way round; the znodes that old tools write become requests
to the controller. Calls to ZooKeeper run in the threads of a `ZookeeperSession`, not on the event loop. Only a broker
with zookeeper.connect imports this package.
"""
