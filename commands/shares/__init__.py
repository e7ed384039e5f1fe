"""Share groups (KIP-932): joins and consumes them, reads and resets their offsets."""
