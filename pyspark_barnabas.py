"""Lets Spark find the source by itself: it looks for a DefaultSource in modules named pyspark_*."""

from analytics.source.sources import RecordSource as DefaultSource

__all__ = ["DefaultSource"]
