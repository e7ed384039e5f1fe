"""The in-flight engine of share groups: the members that have a partition's records, as one share group sees it."""
