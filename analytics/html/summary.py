"""What a person should read first: a few sentences, the worrying ones marked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from analytics.digests import INTERNAL
from analytics.html import figures

Rows = Sequence[Mapping[str, Any]]
Results = Mapping[str, Rows]

_SOON_DAYS: Final = 30
_WORTH_SAVING: Final = 0.2
_SKEWED: Final = 2.0
_FEW_PARTITIONS: Final = 2
_UNTIDY: Final = 0.01
_MOST_NAMED: Final = 3


class Level(StrEnum):
    FACT = "fact"
    HINT = "hint"
    ALARM = "alarm"


class Sentence(NamedTuple):
    level: Level
    text: str


def summary(results: Results) -> list[Sentence]:
    """The sentences that the results give rise to, alarms first; results that were not asked for
    give none. Long ones may be digests: rows that say of how many faults or transactions they
    are."""
    told = [
        *_holdings(results.get("partitions", ())),
        *_faults(results),
        *_disks(results.get("disks", ())),
        *_stalled(results.get("stalled", ())),
        *_open_transactions(results.get("open_transactions", ())),
        *_codecs(_of_users(results.get("codec_trial", ()))),
        *_compaction(_of_users(results.get("compaction", ()))),
        *_skew(_of_users(results.get("skew", ()))),
        *_lateness(_of_users(results.get("lateness", ()))),
    ]
    return sorted(told, key=lambda one: one.level is not Level.ALARM)


def _of_users(rows: Rows) -> Rows:
    """Advice is for topics that somebody can change: the broker's own are as they have to be."""
    return [row for row in rows if not row["topic"].startswith(INTERNAL)]


def _holdings(partitions: Rows) -> Iterator[Sentence]:
    if not partitions:
        return
    times = [row[name] for row in partitions for name in ("first_timestamp", "last_timestamp")]
    known = [time for time in times if time is not None]
    when = f", from {figures.moment(min(known))} to {figures.moment(max(known))} UTC"
    topics = len({row["topic"] for row in partitions})
    records = _records_once(partitions)
    replicas = f" ({len(partitions):,} replicas)" if len(partitions) > len(records) else ""
    hold = "holds" if topics == 1 else "hold"
    yield Sentence(
        Level.FACT,
        f"{_several(topics, 'topic')} with {_several(len(records), 'partition')}{replicas} {hold}"
        f" {_several(sum(records.values()), 'record')} in"
        f" {figures.size(sum(row['bytes'] for row in partitions))}{when if known else ''}.",
    )


def _records_once(partitions: Rows) -> dict[tuple[str, int], int]:
    """The records of each partition; of its replicas, those of the one that reaches furthest."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for row in partitions:
        place = row["topic"], row["partition"]
        last_offset = row.get("last_offset")
        reach = (-1 if last_offset is None else last_offset), row["records"]
        found[place] = max(reach, found.get(place, reach))
    return {place: records for place, (_, records) in found.items()}


def _faults(results: Results) -> Iterator[Sentence]:
    if "faults" not in results:
        return
    faults = results["faults"]
    if not faults:
        yield Sentence(Level.FACT, "The audit found nothing wrong.")
        return
    kinds = Counter[str]()
    for row in faults:
        kinds[row["kind"]] += row.get("faults", 1)
    told = ", ".join(f"{count:,} x {kind}" for kind, count in kinds.most_common())
    yield Sentence(Level.ALARM, f"The audit found {_several(kinds.total(), 'fault')}: {told}.")


def _disks(disks: Rows) -> Iterator[Sentence]:
    for row in disks:
        if not row["is_growing"]:
            yield Sentence(
                Level.FACT,
                f"{row['log_dir']} no longer grows: its newest records are of"
                f" {figures.moment(row['newest'])} UTC.",
            )
        if row["full_on"] is None or not row["is_growing"]:
            continue
        level = Level.ALARM if row["days_left"] < _SOON_DAYS else Level.FACT
        yield Sentence(
            level,
            f"{row['log_dir']} grows by {figures.size(row['bytes_per_day'])} a day; its disk is"
            f" full on {row['full_on']:%Y-%m-%d} if that goes on and nothing is deleted.",
        )


def _stalled(stalled: Rows) -> Iterator[Sentence]:
    groups = sorted({row["group"] for row in stalled})
    if groups:
        behind = figures.count(sum(row["lag"] for row in stalled))
        yield Sentence(Level.ALARM, f"Stalled, {behind} records behind: {_named(groups)}.")


def _open_transactions(transactions: Rows) -> Iterator[Sentence]:
    if transactions:
        topics = sorted({row["topic"] for row in transactions})
        count = sum(row.get("transactions", 1) for row in transactions)
        several = _several(count, "transaction")
        yield Sentence(
            Level.HINT, f"{several} without an end, which consumers wait for: {_named(topics)}."
        )


def _codecs(trials: Rows) -> Iterator[Sentence]:
    best: dict[str, Mapping[str, Any]] = {}
    for row in trials:
        topic = row["topic"]
        if topic not in best or row["saved_share"] > best[topic]["saved_share"]:
            best[topic] = row
    savers = sorted(best.values(), key=lambda row: -row["saved_share"])
    for row in savers[:_MOST_NAMED]:
        if row["saved_share"] >= _WORTH_SAVING:
            yield Sentence(
                Level.HINT,
                f"{row['topic']} would take {figures.share(row['saved_share'])} less"
                f" {'uncompressed' if row['codec'] == 'none' else 'with ' + row['codec']},"
                f" by {_several(row['sampled_batches'], 'batch', 'batches')}.",
            )


def _compaction(gains: Rows) -> Iterator[Sentence]:
    """Only a person knows whether older records of a key are of no more use; records without a key
    surely are, for compaction would remove them all."""
    worth = [
        row
        for row in gains
        if not row["keyless_records"] and (row["removable_share"] or 0) >= _WORTH_SAVING
    ]
    for row in sorted(worth, key=lambda row: -row["removable_bytes"])[:_MOST_NAMED]:
        yield Sentence(
            Level.HINT,
            f"{figures.share(row['removable_share'])} of {row['topic']} are older records of keys"
            f" that have a newer one ({_several(row['removable_records'], 'record')}). If only the"
            " last record of a key matters there, and not each as an event, compaction would"
            f" save about {figures.size(row['removable_bytes'])}.",
        )


def _skew(skews: Rows) -> Iterator[Sentence]:
    skewed = [
        row
        for row in skews
        if row["partitions"] >= _FEW_PARTITIONS and row["records_skew"] >= _SKEWED
    ]
    for row in sorted(skewed, key=lambda row: -row["records_skew"])[:_MOST_NAMED]:
        yield Sentence(
            Level.HINT,
            f"Partition {row['fullest_partition']} of {row['topic']} holds"
            f" {row['records_skew']:.1f} times as many records as the mean.",
        )


def _lateness(lateness: Rows) -> Iterator[Sentence]:
    untidy = [row for row in lateness if row["out_of_order_share"] >= _UNTIDY]
    for row in sorted(untidy, key=lambda row: -row["out_of_order"])[:_MOST_NAMED]:
        yield Sentence(
            Level.HINT,
            f"{figures.share(row['out_of_order_share'])} of {row['topic']}'s records are older"
            f" than one before them, by up to {figures.span(row['late_seconds_max'])}.",
        )


def _several(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown
