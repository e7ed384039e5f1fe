"""The in-flight engine of share groups: which records of a partition are whose, as one share group sees it."""
