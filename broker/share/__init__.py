"""Share groups on this broker: share partitions, share sessions, and the work of ShareFetch and ShareAcknowledge."""
