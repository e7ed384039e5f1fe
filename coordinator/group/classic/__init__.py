"""The classic protocol: members join, a leader assigns, and all members sync."""
