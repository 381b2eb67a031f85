"""Tests fields that switch rotations on and off, per layer or for the model, at each of their
values.

A default configuration shows only one value of a switch. A small model runs with each value that
the code accepts.
"""

from __future__ import annotations

import json
import pathlib
import tempfile
from typing import Any, Iterator

from .compare import compare_run
from .explain import Sextant
from .findings import DIFFERS, FolderResult
from .models import RotaryClass
from .shrink import DEPTHS, whole_number, shrunk
from .stages import layer_types_of, record
from .probe import probe

DEPTH = 8
ALTERNATE = [1, 0] * (DEPTH // 2)

# Field -> values. A field is tested if the configuration has it.
VALUES: dict[str, list[Any]] = {
    "position_embedding_type": ["rope", "rotary", "absolute"],
    "use_mem_rope": [True, False],
    "use_rotary_embedding": [True, False],
    "use_sliding_window": [True, False],
    "sliding_window": [None, 0],
    "sliding_window_pattern": [2],
    "no_rope_layers": [ALTERNATE],
    "no_rope_layer_interval": [2],
    "layer_rope_theta": [[10000.0, 0.0, 500000.0, 0.0] * (DEPTH // 4)],
    "rope_scaling_layers": [[0, 2]],
    "mla_use_nope": [True, False],
    "rope_interleave": [True, False],
    "alibi": [True, False],
    "attention_multiplier": [0.02],
    "query_pre_attn_scalar": [144],
    "prefix_dense_sliding_window_pattern": [2],
    "full_attention_interval": [2],
    "global_attn_every_n_layers": [2],
    "head_dim": [48],
    "kv_channels": [48],
}
# Field -> other fields that must be set for the switch to have an effect.
WITH = {"use_sliding_window": {"sliding_window": 6, "max_window_layers": 2}}


def is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def switches(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each case, and the fields that it changes."""
    for name, values in VALUES.items():
        if name not in fields:
            continue
        for value in values:
            beside = {k: v for k, v in WITH.get(name, {}).items() if k in fields}
            if not is_same(fields[name], value) or any(fields[k] != v for k, v in beside.items()):
                yield f"{name} {json.dumps(value)}", {name: value, **beside}


def shallow(fields: dict[str, Any]) -> dict[str, Any]:
    """The change that gives a model at least DEPTH layers, since lists have one entry per layer."""
    named = whole_number(fields, DEPTHS)
    return {named: DEPTH} if named and fields[named] < DEPTH else {}


def audit_switch(subject: RotaryClass, config: Any, changes: dict[str, Any], sextant: Sextant
                 ) -> tuple[Any, list[str]] | None:
    """The answer and the lines of its comparison; None if transformers refuses the value."""
    try:
        small = shrunk(config, depth=DEPTH, changes=changes)
        layers, _ = probe(small, subject.modeling)
    except Exception:  # pylint: disable=broad-except
        return None
    if not layers:
        return None
    with tempfile.TemporaryDirectory() as folder:
        small.save_pretrained(folder)
        path = pathlib.Path(folder, "config.json")
        saved = json.loads(path.read_text())
        # A saved file may omit values that equal a default; the tested value is always written.
        saved.update({k: v for k, v in changes.items() if k not in saved})
        path.write_text(json.dumps(saved))
        answer = sextant.explain_file(path)
    lines = compare_run(answer.settings, layers, layer_types_of(small)) if answer.settings else []
    return answer, lines


def audit_switches(subject: RotaryClass, config_class: type, sextant: Sextant,
                   result: FolderResult) -> None:
    config = config_class()
    fields = config.to_dict()
    for name, changes in switches(fields):
        case = f"{config_class.__name__} {name}"
        found = audit_switch(subject, config, {**shallow(fields), **changes}, sextant)
        if found is None:
            continue
        record(result, "switches", case, *found)
        bad = "asked" if found[0].settings is None else DIFFERS if found[1] else "agrees"
        result.facts.setdefault("switches", {})[case] = bad
