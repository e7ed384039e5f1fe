"""Share groups on this broker: share partitions, share sessions, and what ShareFetch and ShareAcknowledge do."""
