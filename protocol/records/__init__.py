"""Record batches (v2), message sets (v0, v1), their compression and their control records."""
