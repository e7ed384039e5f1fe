"""Topics: made, grown, deleted, told of."""
