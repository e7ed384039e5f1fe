"""`odradek log`: print, verify and repair data directories."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from broker.clock import SystemClock
from broker.disks.lock import LOCK_FILE, DirectoryInUse, DirectoryLock
from broker.metadata.opening import accept_loss
from cli.actions import Actions
from cli.exits import DONE, FAILED, MISUSED, discard_output
from cli.flags import FROM, integer
from cli.parser import Parser
from coordinator.cluster.formatting import WrongOwner
from coordinator.cluster.quorum import FOLDER
from programs.log.dump import Options, Unreadable, dump
from programs.log.metadata import examine
from programs.log.progress import Progress, megabytes
from programs.log.repair import Aside
from programs.log.verify import Counts, folders_of, is_partition, size_of, verify
from protocol.errors import KafkaError
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk, OsDisk

DUMP: Final = """\
It prints batches and records, indexes, producer snapshots, checkpoints. Records of internal topics (__consumer_offsets,
__transaction_state, __share_group_state, __cluster_metadata) are decoded by the name of their folder, or as --as says.
"""
VERIFY: Final = """\
It prints a line for each problem, and a note for each fault that the next start repairs.
"""
METADATA: Final = """\
It prints topics, brokers with the ids of their log directories, the position of damage, and the records after it, which
--accept gives up. A controller doesn't start on a log that has lost records. If you have a backup, restore the log from
it. If not, --accept makes the next start continue with the records before the damage, and keeps the others in a file
(.torn) beside the log. Partitions of topics that are lost this way stay on disk, as folders that end in -stray.

--only-voter is for a quorum that has lost a majority of its voters for good: this controller becomes the only voter,
with the records that its log has. Compare the remaining controllers, and choose the one with the latest epoch and,
in this epoch, the latest offset. Changes that only the lost controllers had are lost. Never start the others again
with their old directories: they could elect a leader of their own. Format them anew, and add them.

DIR is the directory with __cluster_metadata-0; with --accept or --only-voter, name the other log directories of the
node after it.
"""
REPAIR: Final = """\
After an unclean stop a log is truncated at its first damaged batch, and the readable records after it are kept in the
partition's folder, as set-aside-N files. They stay until you restore or remove them. Without --restore or --discard
nothing is changed.

--restore appends records with their original offsets. That works until the log has records of its own at these
offsets, or of a later leader epoch: stop the broker before producers continue. The other records can be read with
`odradek log dump`. A follower needs no repair: it has fetched the records from its leader again.
"""
CODES: Final = "0 no problem, 1 problems, 2 wrong arguments or data in use"
REPAIR_CODES: Final = "0 no records are set aside now, 1 some are, 2 wrong arguments or data in use"


def declare(actions: Actions) -> None:
    actions.add(
        "dump",
        "print the content of files, partition folders or log directories",
        _with_disk(_dump),
        options=_dump_options,
        examples=(
            "odradek log dump /var/lib/odradek/orders-0",
            "odradek log dump --batches /var/lib/odradek/orders-0/00000000000000000000.log",
        ),
        more=DUMP,
        exit_codes=CODES,
    )
    actions.add(
        "verify",
        "check every checksum, index, snapshot and checkpoint, while no broker uses the data",
        _with_disk(_verify),
        options=_verify_options,
        examples=("odradek log verify /var/lib/odradek", "odradek log verify --deep /var/lib/odradek/orders-0"),
        more=VERIFY,
        exit_codes=CODES,
    )
    actions.add(
        "metadata",
        "show the records and voters of a controller's log, and accept the loss of others",
        _with_disk(_metadata),
        options=_metadata_options,
        examples=(
            "odradek log metadata /var/lib/odradek",
            "odradek log metadata --accept /var/lib/odradek /var/lib/second",
            "odradek log metadata --only-voter /var/lib/odradek",
        ),
        more=METADATA,
        exit_codes=CODES,
    )
    actions.add(
        "repair",
        "show and restore the records that recovery has set aside",
        _with_disk(_repair),
        options=_repair_options,
        examples=("odradek log repair /var/lib/odradek", "odradek log repair --restore /var/lib/odradek/orders-3"),
        more=REPAIR,
        exit_codes=REPAIR_CODES,
    )


def _with_disk(action: Callable[[argparse.Namespace, Disk], int]) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        try:
            status = action(options, OsDisk())
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
            return DONE if action is _dump else FAILED  # the other actions have not done all of their work
        return status

    return run


def _dump_options(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a partition's folder or a log directory")
    parser.add_argument("--batches", action="store_true", help="batches only, no records")
    FROM._replace(parse=integer).add(parser, default=0, help="offset of the first record")
    parser.add_argument("--as", dest="topic", metavar="TOPIC", help="decode records as those of this topic")


def _verify_options(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="DIR", help="a log directory or a partition's folder")
    parser.add_argument("--deep", action="store_true", help="decompress and decode every record too")


def _metadata_options(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="DIR", help="the log directory with the metadata, then others")
    loss = parser.add_mutually_exclusive_group()
    loss.add_argument("--accept", action="store_true", help="continue without the lost records")
    loss.add_argument("--only-voter", action="store_true", help="continue without the other voters, and as --accept")


def _repair_options(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="DIR", help="a log directory or a partition's folder")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--restore", action="store_true", help="append the records that the log has room for")
    action.add_argument("--discard", action="store_true", help="permanently remove the records set aside")


def _dump(options: argparse.Namespace, disk: Disk) -> int:
    shown = Options(not options.batches, options.start, options.topic)
    status = DONE
    for path in options.paths:
        try:
            for line in dump(disk, path, shown):
                sys.stdout.write(f"{line}\n")
        except BrokenPipeError:
            raise
        except (Unreadable, OSError) as error:
            sys.stdout.flush()
            sys.stderr.write(f"odradek: {error}\n")
            status = FAILED
    return status


def _are_usable(disk: Disk, paths: Sequence[str]) -> bool:
    """True if all paths are directories that no broker uses. Otherwise prints the reason to standard error."""
    for path in paths:
        problem = None if _is_folder(disk, path) else f"{path}: there is no such directory"
        problem = problem or (f"{path}: in use by a broker: stop it first" if in_use(path) else None)
        if problem:
            sys.stderr.write(f"odradek: {problem}\n")
            return False
    return True


def _repair(options: argparse.Namespace, disk: Disk) -> int:
    if not _are_usable(disk, options.paths):
        return MISUSED
    if not options.restore and not options.discard:
        return _set_aside(options, disk)
    return _alone(options.paths, lambda: _set_aside(options, disk))


def _alone(paths: Sequence[str], work: Callable[[], int]) -> int:
    """Runs work that changes files while no broker can start on these log directories; returns its status."""
    disk = OsDisk()
    directories = (os.path.dirname(os.path.abspath(path)) if is_partition(disk, path) else path for path in paths)
    with ExitStack() as locks:
        try:
            for directory in dict.fromkeys(map(os.path.realpath, directories)):
                locks.callback(DirectoryLock(directory).release)
        except (DirectoryInUse, OSError) as error:
            sys.stderr.write(f"odradek: {error}\n")
            return MISUSED
        return work()


def _set_aside(options: argparse.Namespace, disk: Disk) -> int:
    """Shows, restores or removes the records that were set aside."""
    now_ms, left = SystemClock().now_ms(), 0
    for folder in [folder for path in options.paths for folder in folders_of(disk, path)]:
        if os.path.basename(os.path.abspath(folder)) == FOLDER:
            continue  # a controller's decisions: a batch of another end would contradict those that followed
        aside = Aside(disk, folder)
        if not aside.files:
            continue
        lines = list(aside.describe())
        if options.restore:
            lines.append(aside.restore(now_ms))
        else:
            lines.append(aside.discard() if options.discard else aside.preview())
        sys.stdout.writelines(f"{line}\n" for line in lines)
        left += len(aside.files)
    sys.stdout.write(f"files set aside: {left or 'none'}\n")
    return FAILED if left else DONE


def _metadata(options: argparse.Namespace, disk: Disk) -> int:
    if not _are_usable(disk, options.paths):
        return MISUSED
    status = DONE
    for line, is_problem in examine(disk, options.paths[0]):
        sys.stdout.write(f"{line}\n")
        status = FAILED if is_problem else status
    if options.accept or options.only_voter:
        return _alone(options.paths, lambda: _accept(options.paths, disk, only_voter=options.only_voter))
    return status


def _accept(paths: Sequence[str], disk: Disk, *, only_voter: bool) -> int:
    try:
        end_offset = accept_loss(paths, paths[0], disk=disk, clock=SystemClock(), only_voter=only_voter)
    except (WrongOwner, CorruptCheckpoint, KafkaError, OSError) as error:
        sys.stderr.write(f"odradek: {error}\n")
        return FAILED
    done = "this controller is the only voter" if only_voter else "accepted"
    sys.stdout.write(f"{done}: the next start continues at offset {end_offset}\n")
    return DONE


def _verify(options: argparse.Namespace, disk: Disk) -> int:
    if not _are_usable(disk, options.paths):
        return MISUSED
    counts = Counts()
    folders = [folder for path in options.paths for folder in folders_of(disk, path)]
    progress = Progress(size_of(disk, folders), sys.stderr, SystemClock())
    for path in options.paths:
        for finding in verify(disk, path, counts, progress.advance, deep=options.deep):
            counts.problems += finding.is_problem
            progress.clear()
            sys.stdout.write(f"{finding}\n")
    progress.clear()
    sys.stdout.write(
        f"{counts.partitions} partitions, {counts.segments} segments, {counts.batches} batches, "
        f"{megabytes(counts.bytes)}: {_problems(counts.problems)}\n"
    )
    return FAILED if counts.problems else DONE


def _problems(number: int) -> str:
    return f"{number or 'no'} problem{'' if number == 1 else 's'}"


def _is_folder(disk: Disk, path: str) -> bool:
    info = disk.stat(path)
    return info is not None and info.is_directory


def in_use(path: str) -> bool:
    """True if a broker holds the lock of a log directory, or of a partition folder's log directory."""
    for directory in (path, os.path.dirname(os.path.abspath(path))):
        if os.path.exists(os.path.join(directory, LOCK_FILE)):
            try:
                DirectoryLock(directory).release()
            except DirectoryInUse:
                return True
            except OSError:  # a read-only volume: no broker runs on it
                return False
    return False
