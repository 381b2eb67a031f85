"""The comparisons for a rotary class: its default configuration, missing fields, scalings."""

from __future__ import annotations

import copy
import json
import pathlib
import tempfile
from typing import Any, Iterator

from .compare import compare_buffers, compare_run, facts_of_run
from .explain import Answer, Sextant
from .findings import DIFFERS, EXPLAINED, FolderResult
from .models import Frequencies, RotaryClass, build, frequencies_of, needed_values, wholes_of
from .probe import LayerSeen, probe
from .shrink import shrunk

ORIGINAL, FACTOR = 4096, 4
OF_WIDTH = 320  # hidden_size / num_attention_heads in a test; no model has this default head size
OTHER_CHANNELS = "the same frequencies on other channels"
NOT_OURS = ("missing 1 required", "missing 2 required", "no model class")
SHRINKINGS = ({}, {"narrow": False}, {"depth": 400}, {"narrow": False, "depth": 4})


def layer_types_of(config: Any) -> list[str] | None:
    return getattr(config, "layer_types", None)


def said(answer: Answer, words: str) -> bool:
    """Whether a note or a warning contains these words."""
    return any(words in remark for s in answer.settings or () for remark in s.remarks)


def record(result: FolderResult, stage: str, case: str, answer: Answer, lines: list[str]) -> None:
    """Adds an answer and the lines of its comparison to the result."""
    result.compared += 1
    if answer.settings is None:
        result.add(stage, case, answer.refusal, [answer.message])
    else:
        result.add(stage, case, DIFFERS, lines)


def run_of(config: Any, modeling: Any, changes: dict[str, Any] | None = None,
           tries: tuple = SHRINKINGS) -> tuple[Any, list[LayerSeen], str]:
    """Runs a small model. Returns its configuration, its layers, and the reason if none ran."""
    why = ""
    for sizes in tries:
        try:
            small = shrunk(config, changes=changes, **sizes)
            layers, failure = probe(small, modeling)
        except Exception as error:  # pylint: disable=broad-except
            small, layers, failure = None, [], f"{type(error).__name__}: {error}"[:160]
        if layers:
            return small, layers, ""
        why = why or failure
        if any(text in failure for text in NOT_OURS):
            break
    return None, [], why


def compare_live(sextant: Sextant, small: Any, layers: list[LayerSeen]) -> tuple[Answer, list[str]]:
    # A new module uses LongRoPE's factors for short sequences.
    answer = sextant.explain_config(
        small, getattr(small, "original_max_position_embeddings", 0) or 0)
    if answer.settings is None:
        return answer, []
    return answer, compare_run(answer.settings, layers, layer_types_of(small))


def audit_defaults(subject: RotaryClass, sextant: Sextant, result: FolderResult) -> type:
    """Compares the default configuration, alone and inside composite ones, and runs a small model.

    Returns the configuration class that the rotary class accepts.
    """
    config, found = build(subject.rotary, subject.config_class)
    name = type(config).__name__
    answer = sextant.explain_config(config)
    lines = compare_buffers(answer.settings, found, layer_types_of(config)) \
        if answer.settings and found else []
    small, layers, why = run_of(config, subject.modeling)
    if layers:
        said, live = compare_live(sextant, small, layers)
        # The forward pass may reorder the buffers, so the run has precedence over them.
        lines = [line for line in lines if OTHER_CHANNELS not in line]
        record(result, "run", name, said, live)
        result.facts.setdefault("runs", {})[name] = facts_of_run(layers)
    else:
        result.unprobed.append(f"{name}: {why}")
    record(result, "defaults", name, answer, lines)
    for whole, member in wholes_of(result.folder, type(config)):
        audit_whole(subject, whole, member, sextant, result)
    return type(config)


def audit_whole(subject: RotaryClass, whole: type, member: str, sextant: Sextant,
                result: FolderResult) -> None:
    case = f"{whole.__name__}.{member}"
    try:
        outer = whole()
        inner = getattr(outer, member)
        found = frequencies_of(subject.rotary(inner))
    except Exception as error:  # pylint: disable=broad-except
        result.unprobed.append(f"{case}: {type(error).__name__}: {error}"[:160])
        return
    answer = sextant.explain_config(outer)
    if answer.settings:
        types = layer_types_of(inner)
        lines = compare_buffers(answer.settings, found, types)
        record(result, "defaults", case, answer,
               [line for line in lines if OTHER_CHANNELS not in line])
    else:
        record(result, "defaults", case, answer, [])


# --- missing fields ---

def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if k not in names}


def left_out(config: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pairs of a name and the fields of the file without it, for which the code has a default."""
    fields = config.to_dict()
    own = fields.get("rope_parameters") or {}
    if own:
        yield "base", without(fields, "rope_parameters", "rope_theta", "rope_scaling")
    inner = [v for v in own.values() if isinstance(v, dict)] or [own]
    if any("partial_rotary_factor" in values for values in inner):
        bare = {k: without(v, "partial_rotary_factor") if isinstance(v, dict) else v
                for k, v in own.items() if k != "partial_rotary_factor"}
        yield "part", {**without(fields, "partial_rotary_factor"), "rope_parameters": bare}
    if isinstance(fields.get("head_dim"), int) and fields.get("hidden_size"):
        yield "head_dim", {**without(fields, "head_dim"), "hidden_size": 16 * OF_WIDTH,
                           "num_attention_heads": 16, "num_key_value_heads": 16}


def says_so(answer: Answer) -> bool:
    """Whether the answer says that a value is from the code."""
    return any("code" in remark or "default" in remark
               for s in answer.settings or () for remark in s.remarks)


def follows_from_file(name: str, fields: dict[str, Any], answer: Answer) -> bool:
    """Whether the value follows from the file alone, without a default of the code: plain RoPE, or
    a value that is computed from other fields."""
    rotating = [s for s in answer.settings or () if s.rotates]
    if name == "part":
        whole = all(2 * sum(f > 0 for f in s.frequencies) == s.head_dim for s in rotating)
        return whole or "qk_rope_head_dim" in fields
    if name == "head_dim":
        return "qk_rope_head_dim" in fields or all(s.head_dim == OF_WIDTH for s in rotating)
    return not rotating


def audit_missing(subject: RotaryClass, config_class: type, sextant: Sextant,
                  result: FolderResult) -> None:
    config, _ = build(subject.rotary, config_class)
    for name, fields in left_out(config):
        fields = {**fields, "model_type": config.model_type}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(fields, default=str))
            try:
                loaded = config_class.from_pretrained(folder)
                found = frequencies_of(subject.rotary(loaded))
            except Exception:  # pylint: disable=broad-except
                continue  # transformers refuses such a file
            answer = sextant.explain_file(pathlib.Path(folder, "config.json"))
        lines = compare_buffers(answer.settings, found, layer_types_of(loaded)) \
            if answer.settings else []
        lines = [line for line in lines if OTHER_CHANNELS not in line]
        if answer.settings and not lines and not says_so(answer) \
                and not follows_from_file(name, fields, answer):
            lines = ["the value is right, but not said to be from the code"]
        case = f"{config_class.__name__} without {name}"
        record(result, "missing", case, answer, lines)
        taken = "asked" if answer.settings is None else "wrong" if lines else "right"
        result.facts.setdefault("missing", {})[case] = taken


# --- scalings ---

def scalings(pairs: int) -> dict[str, dict[str, Any]]:
    """The rope_parameters under test, by name; all are valid in transformers."""
    yarn = {"rope_type": "yarn", "factor": float(FACTOR),
            "original_max_position_embeddings": ORIGINAL}
    longrope = {"rope_type": "longrope", "original_max_position_embeddings": ORIGINAL,
                "short_factor": [1 + 0.5 * i / pairs for i in range(pairs)],
                "long_factor": [1 + 7.0 * i / pairs for i in range(pairs)]}
    return {
        "linear": {"rope_type": "linear", "factor": float(FACTOR)},
        "dynamic": {"rope_type": "dynamic", "factor": float(FACTOR)},
        "yarn": yarn,
        "yarn, betas": {**yarn, "beta_fast": 16.0, "beta_slow": 2.0},
        "yarn, attention_factor": {**yarn, "attention_factor": 1.25},
        "yarn, mscale": {**yarn, "mscale": 0.7, "mscale_all_dim": 1.0},
        "yarn, equal mscale": {**yarn, "mscale": 1.0, "mscale_all_dim": 1.0},
        "yarn, truncate false": {**yarn, "truncate": False},
        "yarn, another factor": {**yarn, "factor": 8.0},
        "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                   "high_freq_factor": 4.0, "original_max_position_embeddings": ORIGINAL},
        "longrope": longrope,
        "longrope, factor": {**longrope, "factor": 16.0},
    }


KEPT = ("rope_theta", "partial_rotary_factor", "mrope_section", "rope_interleaved",
        "mrope_interleaved")
RUN = ("yarn", "yarn, mscale", "llama3")
LENGTHS = {"dynamic": (ORIGINAL, ORIGINAL * FACTOR), "longrope": (ORIGINAL, ORIGINAL * FACTOR)}


def is_local(kind: str) -> bool:
    return "sliding" in kind or "local" in kind


def scaled(config_class: type, parameters: dict[str, Any]) -> Any:
    """The default configuration with these parameters in all layers without a window."""
    fields = config_class().to_dict()
    needed = needed_values(config_class.model_type)
    fields.update(without(needed, "rope_parameters"))
    longer = FACTOR if parameters["rope_type"] != "dynamic" else 1
    fields["max_position_embeddings"] = ORIGINAL * longer
    if "original_max_position_embeddings" in fields \
            and "original_max_position_embeddings" in parameters:
        fields["original_max_position_embeddings"] = ORIGINAL
    if fields.get("head_dim", 1) is None:  # transformers 5.24's scalings would raise TypeError
        fields["head_dim"] = fields["hidden_size"] // fields["num_attention_heads"]
    own = fields.get("rope_parameters") or {}

    def kept(values: dict[str, Any]) -> dict[str, Any]:
        return {**{n: values[n] for n in KEPT if n in values}, **parameters}
    if any(isinstance(v, dict) for v in own.values()):
        fields["rope_parameters"] = {k: kept(v) if isinstance(v, dict) and not is_local(k) else v
                                     for k, v in own.items()}
    else:
        fields["rope_parameters"] = kept(own)
    return config_class.from_dict(fields)


def frequencies_at(module: Any, length: int) -> Frequencies:
    """The frequencies after a call with `length` positions, on which dynamic scalings depend."""
    import torch
    if length:
        positions = torch.arange(length)[None]
        for kind in [k for k in frequencies_of(module) if k] or [None]:
            module(torch.zeros(1, 1), positions, **({"layer_type": kind} if kind else {}))
    return frequencies_of(module)


def pairs_of(subject: RotaryClass, config_class: type) -> int:
    """The number of rotated pairs, which is the length of LongRoPE's lists."""
    module = subject.rotary(scaled(config_class, {"rope_type": "default"}))
    return max(len([f for f in freq if f != 0]) for freq, _ in frequencies_of(module).values())


def audit_scalings(subject: RotaryClass, config_class: type, sextant: Sextant,
                   result: FolderResult) -> None:
    counts = result.facts.setdefault("scalings", {"agree": 0, "refused by transformers": 0})
    try:
        pairs = pairs_of(subject, config_class)
    except Exception:  # pylint: disable=broad-except
        return
    for name, parameters in scalings(pairs).items():
        for length in LENGTHS.get(parameters["rope_type"], (0,)):
            try:
                config = scaled(config_class, parameters)
                found = frequencies_at(subject.rotary(copy.deepcopy(config)), length)
            except Exception:  # pylint: disable=broad-except
                counts["refused by transformers"] += 1
                continue
            answer = sextant.explain_config(config, length)
            lines = compare_buffers(answer.settings, found, layer_types_of(config)) \
                if answer.settings else []
            if name in RUN and not lines and answer.settings:
                small, layers, _ = run_of(config, subject.modeling, tries=({"depth": 4},))
                if layers:
                    lines = compare_live(sextant, small, layers)[1]
            lines = [line for line in lines if OTHER_CHANNELS not in line]
            case = f"{config_class.__name__} {name}" + (f" at {length}" if length else "")
            if "truncate" in name and said(answer, "ignores it where parameters stand by kind"):
                result.add("scalings", case, EXPLAINED,
                           [f"{line}: explain says so" for line in lines])
                lines = []
            record(result, "scalings", case, answer, lines)
            counts["agree"] += answer.settings is not None and not lines
