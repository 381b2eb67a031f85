"""The audit of one folder: all stages for each of its rotary classes of language models."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from .explain import Sextant
from .findings import FolderResult
from .models import RotaryClass, data, rotary_classes, sources_of
from .released import audit_released
from .stages import audit_defaults, audit_missing, audit_scalings
from .switches import audit_switches


def short(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


def attempt(result: FolderResult, name: str, step: Callable, *args: Any) -> Any:
    """Runs a stage. Its failure is recorded, and the other stages still run."""
    try:
        return step(*args)
    except Exception as error:  # pylint: disable=broad-except
        result.unprobed.append(f"{name}: {short(error)}")
        return None


def audit_class(subject: RotaryClass, sextant: Sextant, result: FolderResult) -> None:
    name = subject.rotary.__name__
    if subject.config_class is None:
        signature = inspect.signature(subject.rotary.__init__)
        result.unprobed.append(f"{name}{signature}: names no configuration class")
        return
    config_class = attempt(result, name, audit_defaults, subject, sextant, result)
    if config_class is None:
        return
    for stage in (audit_missing, audit_scalings, audit_switches):
        attempt(result, stage.__name__, stage, subject, config_class, sextant, result)


def audit_folder(folder: str, sextant: Sextant) -> FolderResult:
    result = FolderResult(folder)
    seen, others = set(), []
    for subject, text in rotary_classes(folder):
        if not text:
            others.append(subject.rotary.__name__)
            continue
        result.text = True
        key = (subject.rotary, subject.config_class)
        if key not in seen:
            seen.add(key)
            audit_class(subject, sextant, result)
    if result.text:
        attempt(result, "released", audit_released, folder, sextant, result)
    source = ", ".join(f.name for f in sources_of(folder)[:1])
    if not result.text:
        sense = data()["not_text"].get(folder, "no class of a language model")
        result.reason = f"{source}: {', '.join(others[:2])}: {sense}"
    elif not result.compared:
        result.reason = f"{source}: {'; '.join(result.unprobed[:1])}"
    return result
