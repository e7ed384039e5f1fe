"""Share groups (KIP-932): their members and assignments."""
