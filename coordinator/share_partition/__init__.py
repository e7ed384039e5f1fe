"""Share partitions: the states and acquiring members of a partition's records in flight, for one share group.

In-flight batches consist of runs: consecutive records with one state, one member and one acquisition lock. All changes
but acquisitions are decisions of a machine in `coordinator.engine`: a change is begun, written, then completed, or
undone if the write fails. Acquisitions are made at once: they are in no record, so that no append can fail between a
decision and its effects, and a fetch would walk its runs twice. Records that fail repeatedly are acquired in smaller
portions, and alone at their last attempt. `holdback.py` exists only for groups with delayed delivery or ordering by
key.
"""
