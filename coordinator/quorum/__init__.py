"""KRaft decisions without sockets: the requests of a node of the metadata quorum, and the effects of the answers."""
