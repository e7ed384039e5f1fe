"""Opens, recovers and truncates logs."""
