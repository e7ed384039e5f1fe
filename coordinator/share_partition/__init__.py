"""Share partitions: the states and acquiring members of a partition's records in flight, for one share group.

In-flight batches consist of runs: consecutive records with one state, one member and one acquisition lock. Acquisitions
are made at once. All other changes are decisions of a machine in `coordinator.engine`: a change is begun, written, then
completed, or undone if the write fails. Records that fail repeatedly are acquired in smaller portions, and alone at
their last attempt. `holdback.py` exists only for groups with delayed delivery or ordering by key.
"""
