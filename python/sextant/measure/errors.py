"""Errors of measurements, and the reasons for which a worker ends early."""


class MeasureError(RuntimeError):
    """A field, its value and what is allowed."""


class CannotWrite(MeasureError):
    """A file cannot be written; work that is already written is kept."""


class Stopped(Exception):
    """The command asked the worker to stop; all complete records are written."""
