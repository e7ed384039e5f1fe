"""A request from its frame to its answer."""
