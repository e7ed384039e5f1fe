"""The share coordinator: durable share group state on `__share_group_state`."""
