"""Share groups (KIP-932): members and what is assigned to them."""
