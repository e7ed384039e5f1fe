"""The part that is the same in every group whose members the broker assigns partitions to."""
