"""The integrity audit: what is wrong in log directories, and where. It reads, and mends nothing.

- faults.py      what a fault is, by kind, and the table of them
- batch_walk.py  a segment file batch by batch, past what is damaged as far as one can
- sequence.py    the batches of a segment among themselves
- indexes.py     offset and time indexes against the batches
- index_lengths.py  offset indexes that end too early
- transaction_index.py  aborted transactions against the batches
- segments.py    one segment: its batches, its indexes
- listing.py     what lies in a folder: files, folders, links to nothing, and what is neither
- directories.py files that are missing, damaged, or do not belong
- unread.py      partitions whose segments are gone
- partitions.py  what only shows between the segments of a partition
- audit.py       all of it, segments in parallel on Spark
"""
