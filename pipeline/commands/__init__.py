"""The commands: arguments to a frozen config, a result to lines."""
