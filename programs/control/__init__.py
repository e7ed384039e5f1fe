"""The control server of the profile `test`: injects faults, moves time and shows state, for tests (docs/control.md).

Only `programs/run/controlling.py` imports it, if odradek.control.listener is set.
"""
