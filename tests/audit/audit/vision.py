"""Compares what explain says about vision parts with towers of transformers that run.

Each pair of channels that explain names is rotated by hand, by its frequency times the coordinate
of its axis, and compared with what the code made of the same queries. Channels that explain says
not to rotate must stay. The frequencies are compared with the buffers of the rotary class, too.
"""

from __future__ import annotations

import copy
import json
import math
import pathlib
import re
from typing import Any

from .explain import Sextant
from .findings import DIFFERS, UNBUILT, FolderResult
from .models import classes_of, is_config, modules_of, ROTARY_NAME, ATTENTION_NAME
from .own_runs import OWN_RUNS, sam3_windows
from .towers import COLUMNS, ROWS, PatchIndex, Rotated, run_tower, seen_by_first, shrink

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "sextant/rope_config/families/vision.json"
RUN_TOLERANCE = 2e-5  # of a rotated channel, relative to the largest one
BUFFER_TOLERANCE = 2e-5
STAGE = "vision"

Claim = dict[str, Any]  # an entry of explain's `vision`


def table() -> dict[str, Any]:
    return json.loads(TABLE.read_text())


def rotating_types() -> dict[str, str]:
    """model_type -> folder."""
    return {kind: folder for row in table()["rotating"] for folder, kinds in row["models"].items()
            for kind in kinds}


def unrotated_types() -> dict[str, tuple[str, str]]:
    """model_type -> folder and words."""
    return {kind: (folder.split("/")[1] if "/" in folder else folder, words)
            for words, folders in table()["unrotated"].items() for folder, kinds in folders.items()
            for kind in kinds}


def vision_folders() -> list[str]:
    named = {*rotating_types().values(), *(f for f, _ in unrotated_types().values())}
    return sorted(f"vision {folder}" for folder in named)


def coordinate(claim: Claim, axis: str, place: PatchIndex, grid: tuple[int, int]) -> float:
    t, y, x = place
    index, size = {"time": (t, 1), "height": (y, grid[0]), "width": (x, grid[1]),
                   "frame": (x, grid[1]), "token": (x, grid[1])}[axis]
    if claim["normalised"]:
        return (2 * index + 1) / size - 1
    return index + claim["first_index"]


def expected(claim: Claim, seen: Rotated) -> tuple[Any, list[int]]:
    """The rotated queries by explain's words, and the tokens of which it says something."""
    out, judged = seen.before.clone(), []
    for token, place in enumerate(seen.places):
        if place is None:
            words = {claim["first_token"], claim["last_token"]}
            if "rotated by trained angles" not in words:
                judged.append(token)
            continue
        judged.append(token)
        for pair in claim["pairs"]:
            at = coordinate(claim, claim["axes"][pair["axis"]], place, seen.grid) * seen.scale
            angle, (a, b) = pair["frequency"] * at, pair["channels"]
            first, second = seen.before[token, :, a], seen.before[token, :, b]
            out[token, :, a] = first * math.cos(angle) - second * math.sin(angle)
            out[token, :, b] = first * math.sin(angle) + second * math.cos(angle)
    return out, judged


def compare_run(claim: Claim, seen: Rotated) -> list[str]:
    if seen.before.shape[-1] != claim["head_dim"]:
        return [f"head_dim: explain {claim['head_dim']}, run {seen.before.shape[-1]}"]
    ours, judged = expected(claim, seen)
    off = (ours - seen.after)[judged].abs().amax(dim=(1, 2)) / seen.before.abs().max()
    worst = int(off.argmax())
    if float(off[worst]) <= RUN_TOLERANCE:
        return []
    return [f"token {judged[worst]} at {seen.places[judged[worst]]} is off by {off[worst]:.2g}"]


def compare_buffers(claim: Claim, rotary: Any) -> list[str]:
    """Compares the frequencies with the buffer inv_freq, in any order."""
    buffer = getattr(rotary, "inv_freq", None)
    if buffer is None:
        return []
    unit = 2 * math.pi if claim["normalised"] else 1.0
    theirs = sorted(float(x) * unit for x in buffer.double().flatten())
    ours = sorted(pair["frequency"] for pair in claim["pairs"])
    copies = len(ours) // len(theirs)
    theirs = sorted(theirs * copies)
    if len(ours) != len(theirs):
        return [f"frequencies: explain {len(ours)}, code {len(theirs)}"]
    off = max(abs(a - b) / max(a, b) for a, b in zip(ours, theirs))
    return [f"frequencies are off by {off:.2g}"] if off > BUFFER_TOLERANCE else []


def rotary_of(modeling: Any, config: Any) -> Any:
    """The rotary module of the part; None if no class takes its configuration by annotation."""
    import inspect
    import torch
    for kind in classes_of(modeling, torch.nn.Module):
        parameter = inspect.signature(kind.__init__).parameters.get("config")
        if ROTARY_NAME.search(kind.__name__) and not ATTENTION_NAME.search(kind.__name__) \
                and parameter is not None and parameter.annotation in (type(config),
                                                                       type(config).__name__):
            return kind(config)
    return None


def claims_of(sextant: Sextant, fields: dict[str, Any]) -> list[Claim]:
    answer = sextant.explain_whole(fields)
    if isinstance(answer, str):
        raise ValueError(f"explain refuses: {answer}")
    return answer["vision"]


def claim_at(claims: list[Claim], place: str) -> Claim | None:
    return next((c for c in claims if c["place"] == place), None)


def without_place(claim: Claim | None) -> Claim | None:
    return claim and {k: v for k, v in claim.items() if k not in ("place", "notes", "warnings")}


def audit_part(modeling: Any, config: Any, sextant: Sextant) -> list[str]:
    """The differences of a part with this configuration."""
    if config.model_type == "sam3_vit_model":
        runs, config = sam3_windows(modeling, config)
    else:
        if hasattr(config, "vision_output_dim"):  # Llama 4 has one grid: that of image_size
            config = copy.deepcopy(config)
            config.image_size = 5 * config.patch_size
        config = shrink(config, 1)
        run = OWN_RUNS.get(config.model_type, run_tower)
        runs = run(modeling, config)
    claim = claim_at(claims_of(sextant, config.to_dict()), "")
    if claim is None or not claim["rotates"]:
        return [f"explain: {claim and claim['instead']}, but the code rotates"]
    lines = [line for seen in runs for line in compare_run(claim, seen)]
    if abs(runs[-1].scale - claim["full_scale"]) > 1e-9:
        lines.append(f"scale of coordinates: explain {claim['full_scale']}, run {runs[-1].scale}")
    rotary = rotary_of(modeling, config)
    return lines + (compare_buffers(claim, rotary) if rotary is not None else [])


def audit_windows(modeling: Any, config: Any, sextant: Sextant) -> list[str]:
    """Whether the first layer sees the windows that explain names, and, listed in full_layers, all
    patches."""
    lines = []
    for full in (False, True):
        small = shrink(config, 1)
        if hasattr(small, "pos_emb_height"):
            small.pos_emb_height = small.pos_emb_width = 4
            small.layer_types = ["full_attention" if full else "window_attention"]
        else:
            small.fullatt_block_indexes = [0] if full else []
        claim = claim_at(claims_of(sextant, small.to_dict()), "")
        seen = seen_by_first(modeling, small)
        if claim is None or seen is None:
            return ["the windows could not be run"]
        moved, places = seen
        side = ROWS + COLUMNS if 0 in claim["full_layers"] else claim["window"]
        ours = {place for place in places if place[1] < side and place[2] < side}
        if ours != moved:
            lines.append(f"window {claim['window']}, full layers {claim['full_layers']}: explain "
                         f"{len(ours)} patches, run {len(moved)}")
    return lines


def config_classes(folder: str, kind: str) -> list[type]:
    found = [c for module in modules_of(folder, "configuration_") for c in vars(module).values()
             if is_config(c) and c.model_type == kind and c.__module__ == module.__name__]
    return list(dict.fromkeys(found))


def wholes(kind: type) -> list[tuple[type, str]]:
    """The composite configurations with a part of this class, of its folder."""
    folder = kind.__module__.split(".")[2]
    return [(whole, name) for module in modules_of(folder, "configuration_")
            for whole in vars(module).values() if is_config(whole)
            for name, part in (getattr(whole, "sub_configs", None) or {}).items()
            if part is kind and whole is not kind]


def missing_fields(kind: str) -> list[str]:
    defaults = next(d[kind] for r in table()["rotating"] for d in r["models"].values() if kind in d)
    return ["rope_parameters" if name == "rope_theta" else name for name in defaults]


def audit_rotating(folder: str, kind: str, sextant: Sextant, result: FolderResult) -> None:
    modeling = modules_of(folder, "modeling_")[0]
    facts = result.facts.setdefault("parts", {})
    for config_class in config_classes(folder, kind)[:1]:
        config = config_class()
        result.add(STAGE, f"{kind}, run", DIFFERS, audit_part(modeling, config, sextant))
        result.compared += 1
        claim = claim_at(claims_of(sextant, config.to_dict()), "")
        facts[kind] = {key: claim[key] for key in
                       ("form", "axes", "order", "pairing", "head_dim", "rotary_dim", "base")}
        for name in missing_fields(kind):
            fields = config.to_dict()
            if fields.pop(name, None) is None and name != "rope_parameters":
                continue
            fields.pop("rope_theta" if name == "rope_parameters" else "", None)
            try:
                again = config_class(**{k: v for k, v in fields.items() if k != "model_type"})
            except Exception:  # pylint: disable=broad-except
                continue  # transformers itself refuses
            ours = without_place(claim_at(claims_of(sextant, fields), ""))
            theirs = without_place(claim_at(claims_of(sextant, again.to_dict()), ""))
            if ours != theirs:
                result.add(STAGE, f"{kind} without {name}", DIFFERS,
                           [f"explain {differing(ours, theirs)}"])
            result.compared += 1
        if claim["window"] and kind != "sam3_vit_model":  # its run shows its windows
            result.add(STAGE, f"{kind}, windows", DIFFERS,
                       audit_windows(modeling, config, sextant))
            result.compared += 2
        other = copy.deepcopy(config)
        if getattr(other, "rope_parameters", None) and other.rope_parameters.get("rope_theta"):
            other.rope_parameters["rope_theta"] = 3210.0
        else:
            other.rope_theta = 3210.0
        result.add(STAGE, f"{kind}, base 3210", DIFFERS, audit_part(modeling, other, sextant))
        result.compared += 1
        for whole, name in wholes(config_class):
            try:
                outer = whole()
            except Exception:  # pylint: disable=broad-except
                continue
            fields, part = json.loads(outer.to_json_string(use_diff=False)), getattr(outer, name)
            if part is None:
                continue
            try:
                found = claim_at(claims_of(sextant, fields), name)
            except ValueError as error:  # about the language model, which the other audit judges
                result.unprobed.append(f"{whole.__name__}: {error}"[:160])
                continue
            if without_place(found) != without_place(
                    claim_at(claims_of(sextant, part.to_dict()), "")):
                result.add(STAGE, f"{whole.__name__}.{name}", DIFFERS, ["another answer inside"])
            result.compared += 1


def differing(ours: Claim | None, theirs: Claim | None) -> str:
    return ", ".join(f"{k} {ours[k]}, code {theirs[k]}" for k in ours
                     if k != "pairs" and ours[k] != theirs[k])[:160]


def audit_released(sextant: Sextant, result: FolderResult) -> None:
    """The vision parts of released configurations, read by transformers and by explain."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    kinds, folder = rotating_types(), result.folder.removeprefix("vision ")
    for path in sorted((ROOT / "tests/rope_config/released").glob("*.json")):
        content = json.loads(path.read_text())
        fields = content["config"]
        names = [n for n, v in fields.items() if isinstance(v, dict) and "vision" in n]
        if not names or fields.get("model_type") not in CONFIG_MAPPING:
            continue
        try:
            config = CONFIG_MAPPING[fields["model_type"]].from_dict(copy.deepcopy(fields))
        except Exception as error:  # pylint: disable=broad-except
            result.unprobed.append(f"{content['model']}: {type(error).__name__}"[:160])
            continue
        part = getattr(config, names[0], None)
        if part is None or kinds.get(part.model_type) != folder:
            continue
        ours = without_place(claim_at(claims_of(sextant, fields), names[0]))
        theirs = without_place(claim_at(claims_of(sextant, part.to_dict()), ""))
        lines = [differing(ours, theirs) or "other pairs"] if ours != theirs else []
        lines += audit_part(modules_of(folder, "modeling_")[0], part, sextant)
        result.add(STAGE, content["model"], DIFFERS, lines)
        result.facts.setdefault("released", {})[content["model"]] = part.model_type
        result.compared += 1


def audit_unrotated(folder: str, kind: str, words: str, sextant: Sextant,
                    result: FolderResult) -> None:
    """A part that explain says to have learned vectors: its model has such parameters, and no
    rotary class takes its configuration."""
    import torch
    from transformers import PreTrainedModel
    config = config_classes(folder, kind)[0]()
    for name in ("backbone_config", "text_config"):
        if getattr(config, name, None) is None and hasattr(config, name):
            return
    modeling = next(m for m in modules_of(folder, "modeling_"))
    models = [c for c in classes_of(modeling, PreTrainedModel)
              if getattr(c, "config_class", None) is type(config)]
    claim = claim_at(claims_of(sextant, config.to_dict()), "")
    if claim is None or claim["rotates"] or claim["instead"] != words:
        result.add(STAGE, kind, DIFFERS, [f"explain: {claim and claim['instead']}"])
    names: set[str] = set()
    small = shrink(config, 1)
    for model in models:
        try:
            with torch.device("meta"):
                names |= {n for n, _ in model(small).named_parameters()}
        except Exception:  # pylint: disable=broad-except
            continue
    learned = any(re.search(r"pos", name) for name in names)
    if "learned" in words and not learned:
        result.add(STAGE, kind, DIFFERS if names else UNBUILT,
                   ["no parameter of positions"] if names else ["no model was built"])
    if "learned" in words and rotary_of(modeling, config) is not None:
        result.add(STAGE, kind, DIFFERS, ["a rotary class takes its configuration"])
    result.compared += 1
    result.facts.setdefault("unrotated", {})[kind] = words


def audit_vision(name: str, sextant: Sextant) -> FolderResult:
    result = FolderResult(name, text=True)
    folder = name.removeprefix("vision ")
    for kind, own in rotating_types().items():
        if own == folder:
            audit_rotating(folder, kind, sextant, result)
    for kind, (own, words) in unrotated_types().items():
        if own == folder:
            audit_unrotated(folder, kind, words, sextant, result)
    audit_released(sextant, result)
    return result
