"""A stretch of a log on disk: its file, its indexes, the row of them."""
