"""Bytes of segments to Arrow columns, by compiled loops. Knows no files and no Spark."""
