"""The state of a cluster: gathered, judged, planned and shown."""
