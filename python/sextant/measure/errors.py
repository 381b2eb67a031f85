"""Errors of measurements, and the reasons for which a worker ends early."""

from sextant._errors import Error


class MeasureError(Error, RuntimeError):
    """A field, its value and what is allowed."""


class NoAnswer(MeasureError):
    """A reply that is no answer to the whole prompt, and has no score.

    said: its text. repeats: for a reason that most likely holds for other prompts, too."""

    def __init__(self, message: str, said: str, repeats: bool = True) -> None:
        super().__init__(message)
        self.said, self.repeats = said, repeats


class CannotWrite(MeasureError):
    """A file cannot be written; work that is already written is kept."""


class Stopped(Error):
    """The command asked the worker to stop; all complete records are written."""
