"""Compaction: a log keeps the last record of each key, and lets go of the others.

    selection.py      which log is worth the work, and how much of it may be cleaned
    pending.py        the broker's side of one cleaning: what to do, and taking over what was done
    job.py            what the two sides tell each other
    cleaning.py       the worker's side: reads segments, writes .cleaned ones
    worker.py         the process that does this, fed through its standard input
    compact.py        all of it in one process and one call

Nothing is imported here: the worker loads only the modules that it needs.
"""
