"""Produce: parsed in place (`wire.py`) or from a message (`message.py`), appended and committed by one set of rules
(`serve.py`), and answered in place (`writing.py`) or by a message again."""
