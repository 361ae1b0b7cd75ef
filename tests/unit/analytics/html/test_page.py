"""The report as a file: whole, self-contained, and safe from what the data says."""

from datetime import datetime, timedelta
from html.parser import HTMLParser

from analytics.answers import Answer, Rows
from analytics.html.page import page
from analytics.html.summary import Level, Results, summary
from analytics.html.tables import table

NOW = datetime(2030, 1, 2, 3, 4, 5)
EVIL = "<script>alert('x')</script>&\""

PARTITION = {
    "log_dir": "/logs",
    "topic": EVIL,
    "partition": 0,
    "records": 10,
    "bytes": 2_000,
    "first_timestamp": NOW - timedelta(days=1),
    "last_timestamp": NOW,
}
TRAFFIC = [
    {"topic": EVIL, "hour": NOW + timedelta(hours=hour), "records": hour, "bytes": hour * 100}
    for hour in range(5)
]
LAG = [{"group": "g", "topic": "t", "partition": 0, "at": NOW, "committed": 5, "lag": 3}]
FAULT = {
    "log_dir": "/logs",
    "file": "/logs/t-0/00000000000000000000.log",
    "position": 120,
    "kind": "wrong checksum",
    "detail": "the batch of 90 bytes has been changed",
}
RESULTS: dict[str, Rows] = {
    "partitions": [PARTITION],
    "topics": [{"topic": EVIL, "records": 10, "bytes": 2_000}],
    "traffic": TRAFFIC,
    "codecs": [{"topic": "t", "codec": "zstd", "batches": 1, "records": 10, "bytes": 5}],
    "rhythm": [{"topic": "t", "weekday": 0, "hour": 5, "records": 7}],
    "lag_over_time": LAG,
    "gaps": [],
    "faults": [FAULT],
}


def page_of(results: dict[str, Rows], directory: str = "/logs") -> str:
    answers = {name: Answer.of(rows) for name, rows in results.items()}
    return page(answers, [directory], NOW)


class Parsed(HTMLParser):
    """Checks that tags are closed in order, and collects what there is."""

    VOID = frozenset({"meta", "link", "rect", "line", "polyline", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_page_is_well_formed_and_asks_nothing_of_a_network() -> None:
    parsed = Parsed(page_of(RESULTS))
    assert parsed.open == []
    assert "script" not in parsed.tags
    assert all(one.startswith(("#", "data:")) for one in parsed.addresses)
    assert parsed.tags.count("svg") == 5


def test_names_from_the_data_are_text_and_never_markup() -> None:
    text = page_of(RESULTS, EVIL)
    assert EVIL not in text
    assert EVIL in " ".join(Parsed(text).text)


def test_a_line_comes_down_where_hours_have_no_records() -> None:
    hours = (0, 1, 5)
    rows = [{"topic": "t", "hour": NOW + timedelta(hours=hour), "records": 8} for hour in hours]
    text = page_of({"traffic": rows})
    top, bottom = "26.0", "206.0"
    assert [point.split(",")[1] for point in polyline(text).split()] == [
        top,
        top,
        bottom,
        bottom,
        top,
    ]


def test_the_week_is_that_of_the_users_topics() -> None:
    def shown(*topics: str) -> str:
        row = {"weekday": 0, "hour": 5, "records": 7}
        return page_of({"rhythm": [{"topic": topic, **row} for topic in topics]})

    assert "Mon 05:00: 7<" in shown("t", "__consumer_offsets")
    assert "Mon 05:00: 14<" in shown("t", "u")
    assert "Mon 05:00: 7<" in shown("__consumer_offsets")


def test_page_of_nothing_is_a_page() -> None:
    parsed = Parsed(page_of({name: [] for name in RESULTS}))
    assert parsed.open == []
    assert "Nothing to show." in parsed.text


def test_replicas_are_counted_once_by_the_one_that_reaches_furthest() -> None:
    replicas = [
        {**PARTITION, "log_dir": name, "last_offset": last, "records": records}
        for name, last, records in (("/a", 8, 9), ("/b", 9, 4), ("/c", None, 0))
    ]
    [holdings] = summary({"partitions": replicas})
    assert holdings.text.startswith("1 topic with 1 partition (3 replicas) holds 4 records in 6.00")


def test_alarms_come_first() -> None:
    faults, holdings = summary({"partitions": [PARTITION], "faults": [FAULT, FAULT]})
    assert (holdings.level, faults.level) == (Level.FACT, Level.ALARM)
    assert faults.text == "The audit found 2 faults: 2 x wrong checksum."


def test_summary_says_that_nothing_is_wrong_only_if_somebody_looked() -> None:
    assert summary({}) == []
    assert [one.text for one in summary({"faults": []})] == ["The audit found nothing wrong."]


def test_summary_names_what_deserves_attention() -> None:
    results: Results = {
        "disks": [
            {
                "log_dir": "/logs",
                "bytes_per_day": 5e9,
                "newest": NOW,
                "is_growing": True,
                "days_left": 3.0,
                "full_on": NOW.date() + timedelta(days=3),
            },
            {
                "log_dir": "/copy",
                "bytes_per_day": 5e9,
                "newest": NOW - timedelta(days=700),
                "is_growing": False,
                "days_left": 3.0,  # others grow on its disk
                "full_on": NOW.date() + timedelta(days=3),
            },
        ],
        "stalled": [{"group": name, "lag": 10} for name in "abcde"],
        "open_transactions": [{"topic": "t"}],
        "codec_trial": [
            {"topic": "t", "codec": "zstd", "saved_share": 0.5, "sampled_batches": 1},
            {"topic": "t", "codec": "gzip", "saved_share": 0.4, "sampled_batches": 1},
            {"topic": "small", "codec": "zstd", "saved_share": 0.1, "sampled_batches": 9},
            {"topic": "random", "codec": "none", "saved_share": 0.3, "sampled_batches": 2},
        ],
        "compaction": [
            {
                "topic": "t",
                "removable_share": 0.75,
                "removable_records": 3_000,
                "removable_bytes": 90_000,
                "keyless_records": 0,
            },
            {
                "topic": "events",
                "removable_share": 0.99,
                "removable_records": 9_000,
                "removable_bytes": 9_000_000,
                "keyless_records": 1,
            },
        ],
        "skew": [
            {"topic": "t", "partitions": 4, "fullest_partition": 2, "records_skew": 3.25},
            {"topic": "one", "partitions": 1, "fullest_partition": 0, "records_skew": 1.0},
            {"topic": "__own", "partitions": 50, "fullest_partition": 3, "records_skew": 50.0},
        ],
        "lateness": [
            {
                "topic": "t",
                "out_of_order": 4,
                "out_of_order_share": 0.2,
                "late_seconds_max": 90.0,
            }
        ],
    }
    assert [one.text for one in summary(results)] == [
        "/logs grows by 5.00 GB a day; its disk is full on 2030-01-05 if that goes on and nothing"
        " is deleted.",
        "Stalled, 50 records behind: a, b, c and 2 more.",
        "/copy no longer grows: its newest records are of 2028-02-02 03:04:05 UTC.",
        "1 transaction without an end, which consumers wait for: t.",
        "t would take 50.0% less with zstd, by 1 batch.",
        "random would take 30.0% less uncompressed, by 2 batches.",
        "75.0% of t are older records of keys that have a newer one (3,000 records). If only the"
        " last record of a key matters there, and not each as an event, compaction would save about"
        " 90.0 KB.",
        "Partition 2 of t holds 3.2 times as many records as the mean.",
        "20.0% of t's records are older than one before them, by up to 1.5 min.",
    ]


def test_a_clock_that_was_wrong_squashes_no_chart_of_times() -> None:
    def drawn(*times: datetime) -> str:
        rows = [{"topic": "t", "hour": time, "records": 8} for time in times]
        return page_of({"traffic": rows})

    sound = (NOW - timedelta(hours=5), NOW)
    odd = (datetime(1970, 1, 1), NOW + timedelta(days=9_000))
    assert polyline(drawn(*sound, *odd)) == polyline(drawn(*sound))
    assert "Times to come and those before 2000 are not drawn." in drawn(*sound, *odd)
    assert "not drawn" not in drawn(*sound)
    assert polyline(drawn(*odd)) != polyline(drawn(*sound))  # better than nothing


def test_a_step_of_several_hours_is_no_pause() -> None:
    rows = [
        {"topic": "t", "hour": NOW + timedelta(hours=hour), "hours": 3, "records": 8}
        for hour in (0, 3, 6, 15)
    ]
    assert len(polyline(page_of({"traffic": rows})).split()) == 6


def polyline(text: str) -> str:
    return text.partition('<polyline class="line c0" points="')[2].partition('"')[0]


def test_of_a_long_table_the_largest_rows_are_shown() -> None:
    rows = [{"topic": f"t{number}", "bytes": number % 500} for number in range(500)]
    shown = table(rows, weight="bytes")
    assert '<td class="text">t499<' in shown
    assert '<td class="text">t299<' not in shown
    assert "300 more rows. These have the most bytes." in shown
    assert '<td class="text">t0<' in table(rows[:200], weight="bytes")
