"""The error of this package."""


class ModelError(RuntimeError):
    """A model, or an argument of its attention, that Sextant does not compute exactly."""
