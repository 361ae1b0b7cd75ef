"""The questions that operators ask of their logs, each a function from DataFrames to DataFrames.

`batches` is the batch table (`barnabas-batches`), `records` the record table (`barnabas`), and
`facts` what `facts.record_facts` keeps of the latter. Nothing here starts Spark, reads a path of
its own accord or prints.
"""
