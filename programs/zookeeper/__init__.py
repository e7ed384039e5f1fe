"""ZooKeeper, a façade beside the metadata log, for clients and tools of Kafka 0.8 to 1.1 (docs/zookeeper.md).

What stands in ZooKeeper is made of the image, never the other way round; what old tools write there becomes requests to
the controller. Nothing of it runs on the event loop: a `ZookeeperSession` has threads of its own. Only a broker with
zookeeper.connect imports any of it.
"""
