"""Log directories as Spark tables, and the answers that people want from them.

Imports `storage` for what the bytes mean, never the running broker: it reads files alone.
"""
