"""Log directories as Spark data sources: what Spark asks of one, and the options that users give.

Runs in Spark's Python workers as well as in the driver, so it must not know sessions or commands.
"""
