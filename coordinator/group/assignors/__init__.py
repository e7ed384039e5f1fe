"""Who gets which partitions."""
