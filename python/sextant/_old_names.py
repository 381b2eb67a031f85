"""The warning of a name of an older version, which the next version does not have."""

import warnings


def warn_of_old_name(old_name: str, name: str, stacklevel: int) -> None:
    """Warns at the caller's frame ``stacklevel``, as warnings.warn() in the caller would."""
    warnings.warn(f"{old_name}: its name is {name} now", FutureWarning, stacklevel + 1)
