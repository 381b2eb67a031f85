"""Is position right in the model that runs?

``sextant.doctor(model)`` compares a live model of transformers with what its configuration means,
and returns a :class:`Report`. ``python -m sextant.doctor`` is the command ``sextant doctor``.

Two kinds of sources are compared, which share no code:

* ``sextant explain`` reads the configuration (module ``reading``); its tables are checked against
  the code of transformers by ``./check --audit``.
* The model runs on a few tokens (``probe``). Queries and keys before and after their rotation give,
  as complex ratios (``rotation``), what each layer does: whether it rotates, which channels, in
  which pairs, in which direction, by which frequencies, with which gain. The attention function
  sees the softmax scale, and the mask function the window (``masks``).
* The model's own masks, caches and attention functions run on operands from which visible keys,
  scale, softcap, sinks and the order of heads can be read (``own_runs``, ``own_attention``).

``compare`` turns differences into findings: layers, field, expected and measured value, and the
likeliest cause with the place in the code (``causes``); ``facts`` says what was measured and what
was not. The command makes the report of them (``sextant/cli/doctor``), with a verdict: "sound"
(exit status 0), "findings" (1, or 0 if all are warnings) or "cannot be judged" (2).
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .report import ERROR, FINDINGS, SOUND, UNJUDGED, WARNING, Finding, LayerRow, Report, Unjudged

__all__ = ["ERROR", "FINDINGS", "Finding", "LayerRow", "Report", "SOUND", "UNJUDGED", "Unjudged",
           "WARNING", "doctor"]


def doctor(model: Any) -> Report:
    """Compares a live model with its configuration.

    model: a PreTrainedModel of transformers 4.57 or later, on one device, in any floating type, or
    a module with one inside, such as a PeftModel. It runs a few times on sequences of 12 to 48
    tokens, whole and over its cache, and is left as it was.

    Returns a Report. A model that cannot be judged is no exception: the report's verdict says so.
    Raises TypeError if `model` is no model of transformers, and ReadingError if there is no command
    ``sextant``.
    """
    from .examine import examined_model
    from .subject import model_inside
    try:
        inside = model_inside(model)
    except ModuleNotFoundError as error:
        raise TypeError("doctor: model: expected a model of transformers, but this Python has no "
                        f"{error.name}") from error
    return Report.of(examined_model(inside))


class _Callable(types.ModuleType):
    """``sextant.doctor`` is a package that can be called."""

    def __call__(self, model: Any) -> Report:
        return doctor(model)


sys.modules[__name__].__class__ = _Callable
