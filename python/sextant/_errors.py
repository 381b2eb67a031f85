"""The errors of the package's Python code.

``Error`` is the base of all. A value that is not allowed is a ValueError and a wrong type, or an
argument of no known name, a TypeError, as in torch; both are also the RuntimeErrors that they were
before. Errors of operators (``torch.ops.sextant``), which check shapes, are RuntimeErrors.
"""


class Error(Exception):
    """Something that Sextant does not do, with what it expected instead."""


class InvalidValue(Error, ValueError, RuntimeError):
    """A value that is not allowed."""


class InvalidType(Error, TypeError, RuntimeError):
    """An argument of another type, or of no known name."""
