"""Failures that a person reads: one line that names the problem and the way out."""


class AnalysisError(Exception):
    """An analysis cannot run. The text is one line, shown as it is, without a traceback."""


class NoLogsError(AnalysisError):
    """A place can be read, and no logs are there, or not yet."""
