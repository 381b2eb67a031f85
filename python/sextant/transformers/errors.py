"""The error of this package."""

from sextant._errors import Error


class ModelError(Error, RuntimeError):
    """A model, or an argument of its attention, that Sextant does not compute exactly."""
