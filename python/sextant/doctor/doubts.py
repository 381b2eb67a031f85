"""Warnings: configurations that a model follows and that are doubtful."""

from __future__ import annotations

from .reading import Group, Reading
from .report import WARNING, Finding

# Stretches that reach factor times the original length. Llama 3's are trained further.
BY_FACTOR = ("yarn",)


def _reach(group: Group) -> int | None:
    """The length that the stretch of a group reaches, in positions; None: not known."""
    original = group.parameters.get("original_max_position_embeddings")
    if group.rope_type not in BY_FACTOR or not original:
        return None
    return int(round(group.factor * original))


def doubts(reading: Reading, longest: int | None) -> list[Finding]:
    """The warnings of a reading. longest: max_position_embeddings, or None."""
    found = [Finding((), "configuration", "an effect of each value", warning, "", WARNING)
             for warning in reading.doubts]
    for group in reading.groups:
        reach = _reach(group)
        if reach and longest and longest > 1.01 * reach:
            found.append(Finding(
                group.layer_numbers or (), "configuration",
                f"max_position_embeddings up to {reach}, which {group.method} with factor "
                f"{group.factor:g} reaches", str(longest),
                "angles beyond that length were not seen in training", WARNING))
    return found
