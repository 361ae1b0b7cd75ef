"""Log directories as files: what partitions and segments there are, and where in them to look.

Only reads, and takes live directories as they come. Knows no Spark.
"""
