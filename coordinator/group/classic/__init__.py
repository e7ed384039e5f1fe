"""The classic protocol: members join, a leader assigns, all sync."""
