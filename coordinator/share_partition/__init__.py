"""The in-flight engine of share groups: the states and acquiring members of a partition's records, for one share group.

In-flight batches consist of runs: consecutive records with one state, one member and one acquisition lock. A change of
states is begun, written, then committed, or undone if the write fails. Records that fail repeatedly are acquired in
smaller portions, and alone at their last attempt. `holdback.py` exists only for groups with delayed delivery or
ordering by key.
"""
