"""The programs: `odradek run`, `cluster`, `format` and `log`, and the optional parts of `run`."""
