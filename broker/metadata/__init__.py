"""This broker's part in the cluster: the metadata log, the controller over it, and the node itself.

`Controller` is the same protocol for the controller of this process (`LocalController`) and for other processes
(`RemoteController`). A local controller decides on an `Image` that is ahead of the broker's by the records that are not
yet committed; if a write fails, it rebuilds this image from the log. A snapshot gets its name once it is whole and
flushed, and only then is the log before it deleted. A broker listens once it is registered and its partitions are
opened.
"""
