"""Compares explain with the classes of transformers for the configurations of released models."""

from __future__ import annotations

import functools
import json
import pathlib
import tempfile
from typing import Any

from .compare import compare_buffers
from .explain import Sextant
from .findings import FolderResult
from .models import RotaryClass, frequencies_of, rotary_classes
from .stages import OTHER_CHANNELS, compare_live, layer_types_of, record, run_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests/rope_config/released"


@functools.cache
def by_folder() -> dict[str, list[pathlib.Path]]:
    """Folder of transformers -> the files whose model_type belongs to it."""
    from transformers.models.auto.configuration_auto import (CONFIG_MAPPING_NAMES,
                                                             model_type_to_module_name)
    found: dict[str, list[pathlib.Path]] = {}
    for path in sorted(FOLDER.glob("*.json")):
        kind = json.loads(path.read_text())["config"].get("model_type", "")
        if kind in CONFIG_MAPPING_NAMES:
            found.setdefault(model_type_to_module_name(kind), []).append(path)
    return found


def text_parts(config: Any) -> list[Any]:
    """The configuration and its nested configurations."""
    parts = [config]
    for name in getattr(type(config), "sub_configs", None) or {}:
        inner = getattr(config, name, None)
        if inner is not None and hasattr(inner, "model_type"):
            parts += text_parts(inner)
    return parts


def subject_for(folder: str, config: Any) -> tuple[RotaryClass, Any] | None:
    """The rotary class and the part of the configuration that it accepts, or None."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name
    for part in text_parts(config):
        own = model_type_to_module_name(part.model_type)
        for name in dict.fromkeys((folder, own)):
            for subject, text in rotary_classes(name):
                if text and subject.config_class is type(part):
                    return subject, part
    return None


def audit_released(folder: str, sextant: Sextant, result: FolderResult) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    for path in by_folder().get(folder, []):
        content = json.loads(path.read_text())
        fields, case = content["config"], content["model"]
        with tempfile.TemporaryDirectory() as where:
            pathlib.Path(where, "config.json").write_text(json.dumps(fields))
            # A new module uses LongRoPE's factors for short sequences.
            short = fields.get("original_max_position_embeddings") or 0
            answer = sextant.explain_file(pathlib.Path(where, "config.json"), short)
            try:
                config = CONFIG_MAPPING[fields["model_type"]].from_pretrained(where)
                found = subject_for(folder, config)
                if found is None:
                    raise ValueError("no rotary class takes this configuration")
                subject, part = found
                buffers = frequencies_of(subject.rotary(part))
            except Exception as error:  # pylint: disable=broad-except
                result.unprobed.append(f"{case}: {type(error).__name__}: {error}"[:160])
                continue
        lines = compare_buffers(answer.settings, buffers, layer_types_of(part)) \
            if answer.settings else []
        record(result, "released", case, answer,
               [line for line in lines if OTHER_CHANNELS not in line])
        small, layers, why = run_of(part, subject.modeling)
        if layers:
            said, live = compare_live(sextant, small, layers)
            record(result, "released, run", case, said, live)
            scales = sorted({s.softmax_scale for s in answer.settings or () if s.softmax_scale})
            result.facts.setdefault("released", {})[case] = scales
        else:
            result.unprobed.append(f"{case}: {why}")
