"""Failures that an operator reads: one line that names the problem and the way out."""


class StartupError(Exception):
    """The broker cannot start. The text is one line, shown as it is, without a traceback."""
