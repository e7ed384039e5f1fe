"""The control server of the profile `test`: faults, time and a look inside, for tests (docs/control.md).

No other broker imports any of it: `programs/run/controlling.py` does, where odradek.control.listener is set.
"""
