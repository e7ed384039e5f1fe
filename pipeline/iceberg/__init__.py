"""Topics as Iceberg tables: load and audit. A compare-and-swap of the last snapshot is the only way to main."""
