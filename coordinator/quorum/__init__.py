"""KRaft as decisions: what a node of the metadata quorum asks, and what it makes of the answers. No sockets."""
