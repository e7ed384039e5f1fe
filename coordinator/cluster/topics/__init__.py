"""Topics: created, grown, deleted, described."""
