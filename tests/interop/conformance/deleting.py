"""DeleteRecords as a step of other tests."""

from __future__ import annotations

from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.interop.conformance.peers import Peer

VERSION = 2


def delete_records(peer: Peer, name: str, offset: int) -> None:
    """Deletes the first partition's records below an offset; -1 for all. The answer is not compared."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=name, partitions=[partition])
    peer.quietly(DeleteRecordsRequest(topics=[topic], timeout_ms=5000), VERSION)
