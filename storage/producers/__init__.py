"""The state of a log's producers."""
