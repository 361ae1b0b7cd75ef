"""The code of docs/spark.md, run as it stands there, block by block."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from storage.records.builder import BatchBuilder
from storage.records.layout import Codec
from tests.unit.analytics.segments import START_MS, write_segment

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The page's relative paths start where Spark was started; this Spark serves other tests too.
PLACE = re.compile(r'"(data/logs|orders\.parquet|orders\.checkpoint)"')

COUNTRIES = {"ann": "NO", "bob": "FI", "eve": "FI"}
ORDERS = [("ann", 10.0), ("bob", 1.5), ("eve", 2.5), ("ann", 5.0)] * 100


def values(*rows: tuple[str, dict[str, Any]]) -> bytearray:
    builder = BatchBuilder(base_offset=0, codec=Codec.ZSTD)
    for offset, (key, value) in enumerate(rows):
        builder.append(START_MS + offset, key.encode(), json.dumps(value).encode(), (), offset)
    return builder.build()


def test_the_pages_code_runs_and_is_right(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "data" / "logs"
    moved = ("ann", {"name": "Ann", "country": "SE"})
    now = [(name, {"name": name, "country": country}) for name, country in COUNTRIES.items()]
    write_segment(logs, "customers-0", 0, [values(moved, *now)])
    bought = [(name, {"customer": name, "amount": amount}) for name, amount in ORDERS]
    write_segment(logs, "orders-0", 0, [values(*bought)])
    names: dict[str, Any] = {}
    try:
        for code in BLOCK.findall(PAGE.read_text()):
            placed = PLACE.sub(lambda found: f'"{tmp_path / found[1]}"', code)
            exec(compile(placed, str(PAGE), "exec"), names)
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
        if names.get("query"):
            names["query"].stop()

    countries = {row.country: row.amount for row in names["by_country"].collect()}
    assert countries == {"NO": 1500.0, "FI": 400.0}
    assert names["first_hundred"] == 100
    sizes = {row.topic: (row.codec, row.records) for row in names["sizes"].collect()}
    assert sizes == {"orders": ("zstd", len(ORDERS)), "customers": ("zstd", 4)}
    streamed = spark.read.parquet(str(tmp_path / "orders.parquet"))
    assert streamed.count() == len(ORDERS)
    names["facts"].unpersist()
