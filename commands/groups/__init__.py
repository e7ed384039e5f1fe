"""Consumer groups: describes and joins them, reads and resets their offsets."""
