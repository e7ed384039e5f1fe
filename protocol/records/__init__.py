"""Record batches (v2) and message sets (v0, v1), with their compression and control records."""
