"""The programs: `odradek run`, `cluster`, `format` and `log`, and what `run` puts beside a broker on request."""
