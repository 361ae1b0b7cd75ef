"""Failures that a person reads: one line that names the problem and the way out."""


class AnalysisError(Exception):
    """An analysis cannot run. The text is one line, shown as it is, without a traceback."""
