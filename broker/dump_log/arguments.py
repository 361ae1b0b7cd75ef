"""The command line of `barnabas dump-log`: the options of kafka-dump-log, and files as they are.

Owns the options and what they ask for. Light to import: the parser of every command needs it.
"""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.dump_log.segment_dump import SegmentOptions

_DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options; `run` is what they are for."""
    command.description = (
        "Show what the files of a partition hold: segments (.log), offset, time and transaction"
        " indexes (.index, .timeindex, .txnindex) and producer snapshots (.snapshot), in the lines"
        " of Apache Kafka's kafka-dump-log. Files are only read; a broker may be running on them."
    )
    command.add_argument("paths", metavar="FILE", nargs="*", help="files to show")
    command.add_argument(
        "--files", metavar="FILE,FILE...", default="", help="the same, in Kafka's form"
    )
    command.add_argument(
        "--deep-iteration", action="store_true", help="show the records in each batch"
    )
    command.add_argument(
        "--print-data-log", action="store_true", help="show their keys and values as well"
    )
    command.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="show keys and values as those of __consumer_offsets",
    )
    command.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="show keys and values as those of __transaction_state",
    )
    command.add_argument(
        "--verify-index-only",
        action="store_true",
        help="compare indexes with their segments, without showing their entries",
    )
    command.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="only make the quick checks of indexes that a broker makes when it starts",
    )
    command.add_argument(
        "--max-message-size",
        metavar="BYTES",
        type=int,
        default=_DEFAULT_MAX_MESSAGE_SIZE,
        help="size of the largest batch that an index may name; default: %(default)s",
    )
    command.set_defaults(run=run, fail=command.error)


def run(parsed: argparse.Namespace) -> int:
    from broker.dump_log.command import DumpOptions, dump_files
    from broker.dump_log.index_dump import IndexOptions

    paths = [path for path in parsed.files.split(",") if path] + parsed.paths
    if not paths:
        parsed.fail("name at least one FILE")
    indexes = IndexOptions(
        shows_entries=not parsed.verify_index_only,
        checks_sanity_only=parsed.index_sanity_check,
        max_message_size=parsed.max_message_size,
    )
    options = DumpOptions(_segment_options(parsed), indexes)
    return dump_files(paths, options, sys.stdout, sys.stderr)


def _segment_options(parsed: argparse.Namespace) -> "SegmentOptions":
    """A decoder asks for keys and values, and these ask for records."""
    from broker.dump_log import payloads
    from broker.dump_log.segment_dump import SegmentOptions

    if parsed.offsets_decoder:
        return SegmentOptions(True, payloads.format_group_record)
    if parsed.transaction_log_decoder:
        return SegmentOptions(True, payloads.format_transaction_record)
    if parsed.print_data_log:
        return SegmentOptions(True, payloads.format_text)
    return SegmentOptions(parsed.deep_iteration)
