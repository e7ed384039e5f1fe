"""Share groups (KIP-932): joined, consumed, their offsets read and reset."""
