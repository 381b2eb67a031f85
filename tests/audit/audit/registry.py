"""Model types without rotary positions: explain must answer that they do not rotate, without
further values."""

from __future__ import annotations

import re
from typing import Any

from .explain import Sextant
from .findings import DIFFERS, FolderResult
from .models import rotary_folders, sources_of

NAME = "(types without a rotary class)"
# Code that may rotate without a rotary class, such as the functions of GPT-J.
ROTATES = re.compile(r"rotary|rotate_half|rotate_every_two|\brope\b|RotaryPos", re.IGNORECASE)


def types_inside(config: Any) -> set[str]:
    """The types of the nested configurations, at any depth."""
    found = set()
    for name in getattr(type(config), "sub_configs", None) or {}:
        inner = getattr(config, name, None)
        if inner is not None and getattr(inner, "model_type", None):
            found |= {inner.model_type} | types_inside(inner)
    return found


def types_run_by_others() -> set[str]:
    """The types that have only a configuration and run with the model class of another folder."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    owners: dict[str, list[str]] = {}
    for kind, name in MODEL_MAPPING_NAMES.items():
        for one in name if isinstance(name, tuple) else (name,):
            owners.setdefault(one, []).append(kind)
    return {kind for kinds in owners.values() for kind in kinds
            if len(kinds) > 1 and kind in CONFIG_MAPPING_NAMES}


def audit_registry(sextant: Sextant) -> FolderResult:
    from transformers.models.auto.configuration_auto import (CONFIG_MAPPING, CONFIG_MAPPING_NAMES,
                                                              model_type_to_module_name)
    result = FolderResult(NAME, text=True)
    rotary = set(rotary_folders())
    rotates = {folder: any(ROTATES.search(f.read_text()) for f in sources_of(folder))
               for folder in {model_type_to_module_name(k) for k in CONFIG_MAPPING_NAMES}}
    elsewhere = types_run_by_others()
    counts = {"types": 0, "do not rotate": 0, "may rotate": 0, "not built by default": 0}
    for kind in CONFIG_MAPPING_NAMES:
        folder = model_type_to_module_name(kind)
        if folder in rotary:
            continue
        counts["types"] += 1
        try:
            config = CONFIG_MAPPING[kind]()
            inside = {model_type_to_module_name(t) for t in types_inside(config)}
        except Exception:  # pylint: disable=broad-except
            counts["not built by default"] += 1
            continue
        if inside & rotary:
            counts["may rotate"] += 1  # the folder of a nested configuration is audited
            continue
        try:
            answer = sextant.explain_config(config)
        except Exception:  # pylint: disable=broad-except
            counts["not built by default"] += 1
            continue
        result.compared += 1
        if answer.settings is None:
            result.add("registry", kind, answer.refusal, [answer.message])
        elif any(rotates.get(f) for f in inside | {folder}) or kind in elsewhere:
            counts["may rotate"] += 1
        elif any(s.rotates or s.frequencies for s in answer.settings):
            result.add("registry", kind, DIFFERS, ["explain says that it rotates"])
        else:
            counts["do not rotate"] += 1
    result.facts["registry"] = counts
    return result
