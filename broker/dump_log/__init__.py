"""`barnabas dump-log`: shows segments, indexes and snapshots in the lines of kafka-dump-log.

Reads files only, and changes none: a broker may be running on them. What each line looks like and
which checks are made is Apache Kafka 2.5's; unlike there, damage never ends the dump.
"""
