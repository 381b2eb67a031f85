"""Attention that the code of a model computes itself, replaced by functions of this package.

A file of ``sextant.transformers.attention`` names the classes of some models, and has functions in
place of their methods. All changes are attributes of modules, which are noted in the module, so
models with them can be copied and pickled, and ``undo`` finds them in any part of a model.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sextant.transformers.errors import ModelError

# The attribute of a changed module: {name: (whether it had that attribute, its value)}.
NOTE = "_sextant_replaced"
_FOLDER = re.compile(r"\.models\.(\w+)\.")


@dataclass(frozen=True)
class Replacement:
    """function(module, ...) for a method of a class in some folders of transformers' models, or a
    value for an attribute.

    by: the method of Sextant that computes the layer, for ``served``; None for a part of one.
    when: tells by a module whether it has the attention that the function computes; it may raise
    ModelError, for what cannot be served. terms: tells whether it has terms of the method, else it
    is "none". ranges: whether the model's code hands on the masks of the attention interface,
    ``masks.Ranges``, though it computes attention itself. makes: whether function(module) is the
    value itself. values: of further attributes."""

    kind: str
    name: str
    folders: tuple[str, ...]
    function: Any
    by: str | None
    when: Callable[[Any], bool]
    terms: Callable[[Any], bool]
    ranges: bool
    makes: bool
    values: dict[str, Any]


_REPLACEMENTS: dict[str, list[Replacement]] = {}  # by name of the class


def _always(module):
    return True


def replaces(target: str, *folders: str, by: str | None = None,
             when: Callable[[Any], bool] = _always, terms: Callable[[Any], bool] = _always,
             ranges: bool = False, makes: bool = False, **values: Any) -> Callable[[Any], Any]:
    """Registers a function for target, a class or Class.method (by default forward), in folders of
    transformers' models: a ``Replacement``."""
    kind, _, name = target.partition(".")

    def register(function):
        _REPLACEMENTS.setdefault(kind, []).append(
            Replacement(kind, name or "forward", folders, function, by, when, terms, ranges,
                        makes, values))
        return function
    return register


@functools.cache
def _load() -> dict[str, list[Replacement]]:
    from sextant.transformers import attention
    for module in pkgutil.iter_modules(attention.__path__):
        importlib.import_module(f"{attention.__name__}.{module.name}")
    return _REPLACEMENTS


def replacements_of(module):
    """The replacements for a module."""
    for kind in type(module).__mro__:
        folder = _FOLDER.search(kind.__module__)
        found = [one for one in _load().get(kind.__name__, ())
                 if folder and folder[1] in one.folders and one.when(module)]
        if found:
            return found
    return []


def all_replacements() -> list[Replacement]:
    """Those of all models, in the order of the files."""
    return [one for kinds in _load().values() for one in kinds]


def swap(model) -> list[Replacement]:
    """Replaces what it can in a model, and returns by what."""
    found = []
    for module in list(model.modules()):
        for one in replacements_of(module):
            found.append(one)
            put(module, one.name, one.function(module) if one.makes else
                functools.partial(one.function, module) if callable(one.function) else one.function)
            for name, value in one.values.items():
                put(module, name, value)
    return found


def put(module, name, value):
    """Sets an attribute of a module until ``undo``."""
    own = {name: (name in module.__dict__, module.__dict__.get(name))}
    module.__dict__[NOTE] = {**own, **module.__dict__.get(NOTE, {})}
    module.__dict__[name] = value


def before(module, name):
    """The value that an attribute of a module has without ``put``."""
    had, value = module.__dict__[NOTE][name]
    return value if had else getattr(type(module), name)


def undo(model):
    """Undoes all of ``put`` in a model."""
    for module in model.modules():
        for name, (had, value) in module.__dict__.pop(NOTE, {}).items():
            if had:
                module.__dict__[name] = value
            else:
                module.__dict__.pop(name, None)


def swapped_by(module):
    """The method of Sextant that computes a module in place of its own code; None if none does."""
    if NOTE not in module.__dict__:
        return None
    one = next((one for one in replacements_of(module) if one.by), None)
    return None if one is None else one.by if one.terms(module) else "none"


def refuse_weights(module, output_attentions=None):
    """Raises ModelError if a call asks for weights."""
    if output_attentions or getattr(getattr(module, "config", None), "output_attentions", False):
        raise ModelError("output_attentions: expected False, as Sextant computes no matrix of "
                         "attention weights, but got True")


def refuse_given(**arguments):
    """Raises ModelError for arguments, by name, that Sextant cannot compute with."""
    for name, value in arguments.items():
        if value is not None:
            raise ModelError(f"{name}: expected None, as Sextant's attention has no such term, but "
                             "got a value")
