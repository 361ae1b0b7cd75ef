import pytest

from analytics.source.options import EARLIEST, LATEST, Isolation, OptionError, parse_options

PATH = {"path": "/logs"}


def test_what_is_not_said_is_as_in_sparks_kafka_source() -> None:
    options = parse_options(PATH)
    assert (options.starting.offset, options.ending.offset) == (EARLIEST, LATEST)
    assert parse_options(PATH, is_streaming=True).starting.offset == LATEST
    assert options.isolation is Isolation.UNCOMMITTED
    assert options.fails_on_data_loss
    assert options.columns == (
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    )  # fmt: skip
    assert options.max_trigger_delay_ms == 15 * 60 * 1000


def test_several_directories_may_be_named() -> None:
    assert parse_options({"path": "/a, /b"}).directories == ("/a", "/b")
    assert parse_options({"paths": '["/a,b", "/c"]'}).directories == ("/a,b", "/c")


def test_names_of_options_have_no_case() -> None:
    assert parse_options({"path": "/a", "INCLUDEHEADERS": "TRUE"}).columns[-1] == "headers"


@pytest.mark.parametrize("side", ["starting", "ending"])
def test_a_timestamp_wins_over_timestamps_and_those_over_offsets(side: str) -> None:
    offsets = {f"{side}Offsets": '{"t": {"0": 3}}'}
    timestamps = {f"{side}OffsetsByTimestamp": '{"t": {"0": 4}}'}
    timestamp = {f"{side}Timestamp": "5"}

    def bound(**given: str) -> tuple[object, object, object]:
        found = getattr(parse_options({**PATH, **given}), side)
        return found.timestamp, found.timestamps, found.offsets

    assert bound(**offsets) == (None, None, {("t", 0): 3})
    assert bound(**offsets, **timestamps) == (None, {("t", 0): 4}, None)
    assert bound(**offsets, **timestamps, **timestamp) == (5, None, None)


def test_a_pattern_means_any_part_of_a_name_as_in_spark_and_no_internal_topic() -> None:
    selection = parse_options({**PATH, "subscribePattern": "^a|b$|__consumer_offsets"}).selection
    assert selection.includes("abc", 0)
    assert selection.includes("cab", 0)
    assert not selection.includes("cabc", 0)
    assert not selection.includes("__consumer_offsets", 0)


def test_choices_have_no_case() -> None:
    given = {"startingOffsetsByTimestampStrategy": "LATEST", "onDamage": "Skip"}
    options = parse_options({**PATH, **given, "isolationLevel": "READ_COMMITTED"})
    assert options.starting.is_latest_if_none
    assert options.skips_damage
    assert options.isolation is Isolation.COMMITTED


def test_isolation_may_have_the_consumers_name() -> None:
    options = parse_options({**PATH, "kafka.isolation.level": "read_committed"})
    assert options.isolation is Isolation.COMMITTED


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": ""}, "name a log directory"),
        ({"subscribe": "a", "assign": "{}"}, "only one of them"),
        ({"subscribe": " , "}, "at least one topic"),
        ({"assign": "[1]"}, "assign: .* is not of the form"),
        ({"assign": "{"}, "assign: .* is not JSON"),
        ({"subscribePattern": "("}, "subscribePattern"),
        ({"subscribePattern": " "}, "subscribePattern: the pattern is empty"),
        ({"assign": '{"t": ["0"]}'}, "assign: .* is not of the form"),
        ({"startingOffsets": '{"t": {"0": 2.5}}'}, "startingOffsets: .* is not of the form"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "startingOffsets: .* is not of the form"),
        ({"startingOffsets": "latest"}, "cannot start at the latest"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "cannot start at the latest"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "offsets begin at 0"),
        ({"startingOffsets": "soon"}, "startingOffsets: 'soon' is not JSON"),
        ({"startingOffsets": '{"t": {"0": 9223372036854775808}}'}, "is not of the form"),
        ({"subscribePattern": r"\p{Alpha}"}, "bad escape .*in Python's syntax"),
        ({"maxBytesPerArrowBatch": "2147483648"}, "2147483648 is more than the most"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"endingOffsets": '{"t": 3}'}, "endingOffsets: .* is not of the form"),
        ({"startingTimestamp": "yesterday"}, "not a number of milliseconds"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "neither error nor latest"),
        ({"isolationLevel": "dirty"}, "isolationLevel: 'dirty'"),
        ({"failOnDataLoss": "maybe"}, "neither true nor false"),
        ({"onDamage": "ignore"}, "neither fail nor skip"),
        ({"excludeColumns": "values"}, "there is no column values"),
        ({"maxOffsetsPerTrigger": "0"}, "not a number above 0"),
        ({"maxTriggerDelay": "soon"}, "not a duration"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger: 9 is more than the most, 8",
        ),
    ],
)
def test_what_an_option_cannot_mean_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options({**PATH, **given})


def test_a_streaming_query_has_no_end() -> None:
    with pytest.raises(OptionError, match="endingTimestamp: a streaming query has no end"):
        parse_options({**PATH, "endingTimestamp": "5"}, is_streaming=True)
