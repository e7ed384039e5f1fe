"""This broker's part in the cluster: the metadata log, the controller over it, and the node itself.

`Controller` is the protocol of the controller in this process (`LocalController`) and of controllers in other processes
(`RemoteController`). A local controller is a machine of the engine, which decides on an `Image` that also has its
uncommitted records. A snapshot gets its final name once it is complete and flushed, and only then is
the log before it deleted. A broker listens once it is registered and its partitions are open.
"""
