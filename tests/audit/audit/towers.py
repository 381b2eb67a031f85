"""Runs a vision tower of transformers on a grid that is not square, and records the queries before
and after their rotation.

Each way to call a tower is a generator of candidate inputs; the first that the tower accepts
counts. The places of the tokens are listed here by themselves, in the order in which the pixels
were given, so that height and width are told apart by the picture and not by the code's position
ids.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Iterator

from .models import classes_of

ROWS, COLUMNS, FRAMES = 6, 10, 2
APPLY = re.compile(r"^(apply|vision_apply)_\w*(rotary|rope)")

PatchIndex = tuple[int, int, int] | None  # frame, row and column; None: a token beside the patches


@dataclass
class Rotated:
    """One call of the function that rotates: [tokens, rows of channels, head_dim] each."""

    before: Any
    after: Any
    places: list[PatchIndex]
    grid: tuple[int, int]  # rows and columns
    scale: float = 1.0  # of the coordinates


@dataclass
class TowerInput:
    """What a call needs: arguments, and the places of the tokens."""

    arguments: dict[str, Any]
    places: list[PatchIndex]
    grid: tuple[int, int] = (ROWS, COLUMNS)


def raster(rows: int, columns: int, frames: int = 1) -> list[PatchIndex]:
    return [(t, y, x) for t in range(frames) for y in range(rows) for x in range(columns)]


def in_blocks(rows: int, columns: int, merge: int, frames: int = 1) -> list[PatchIndex]:
    """The patches in the order of blocks of merge x merge, as processors pack them."""
    return [(t, by + y, bx + x) for t in range(frames) for by in range(0, rows, merge)
            for bx in range(0, columns, merge) for y in range(merge) for x in range(merge)]


def one(value: Any) -> int:
    return int(value[0] if isinstance(value, (list, tuple)) else value)


def shrink(config: Any, layers: int) -> Any:
    """A copy of the configuration with few layers; widths stay."""
    small = copy.deepcopy(config)
    for name in ("depth", "num_hidden_layers", "memory_attention_num_layers"):
        if getattr(small, name, None):
            setattr(small, name, layers)
    for name in ("layer_types", "num_key_value_heads_per_layer"):
        if isinstance(getattr(small, name, None), list):
            kept = getattr(small, name)[:layers]
            if name == "layer_types" and not any("attention" in kind for kind in kept):
                kept = ["full_attention"] * layers  # convolutions come first
            setattr(small, name, kept)
    for name in ("deepstack_visual_indexes", "out_features", "out_indices"):
        if getattr(small, name, None):
            setattr(small, name, [0] if name.startswith("deepstack") else None)
    return small


def packed(model: Any, config: Any, names: list[str]) -> Iterator[TowerInput]:
    """Patches of Qwen-VL's kind, with the grid beside them."""
    import torch
    patch, channels = one(config.patch_size), getattr(config, "in_channels", 3) or 3
    frames = FRAMES if config.model_type.startswith("minimax") else 1
    merge = 1 if config.model_type.startswith(("kimi", "muse", "paddle", "video_llama")) \
        else getattr(config, "spatial_merge_size", 1)
    grid = torch.tensor([[frames, ROWS, COLUMNS]])
    tokens = frames * ROWS * COLUMNS
    places = in_blocks(ROWS, COLUMNS, merge, frames)
    first = names[0]
    if "image_grid_thw" in names:  # Inkling: cells of merged patches, a class token in front
        side = patch * merge
        cells = torch.randn(tokens // merge ** 2, side, side, channels)
        yield TowerInput({first: cells, "image_grid_thw": torch.tensor([[1, ROWS // merge,
                                                                  COLUMNS // merge]])},
                  [None, *places])
        return
    more = {"merge_sizes": torch.tensor([1])} if "merge_sizes" in names else {}
    times = [getattr(config, "temporal_patch_size", 0) or getattr(config, "patch_temporal", 1), 1]
    for time in dict.fromkeys(map(one, times)):
        size = (channels, time, patch, patch)
        for shape in ((channels * time * patch * patch,), (channels * time, patch, patch), size,
                      (time, channels, patch, patch)):
            for batch in ((tokens,), (1, tokens)):
                pixels = torch.randn(*batch, *shape)
                yield TowerInput({first: pixels, "grid_thw": grid, **more}, places)


def pictures(model: Any, config: Any, names: list[str]) -> Iterator[TowerInput]:
    """Whole pictures [batch, channels, height, width]."""
    import torch
    patch = one(config.patch_size)
    llama = hasattr(config, "vision_output_dim")  # Llama 4: a square grid, the class token last
    rows, columns = (5, 5) if llama else (ROWS, COLUMNS)
    pixels = torch.randn(1, 3, rows * patch, columns * patch)
    before = 1 + (getattr(config, "num_register_tokens", 0) or 0)
    places = raster(rows, columns)
    more = {"image_sizes": torch.tensor([[rows * patch, columns * patch]])} \
        if "image_sizes" in names else {}
    for listed in ([places + [None]] if llama else
                   [places, [None] * before + places, [None, *places]]):
        yield TowerInput({names[0]: pixels, **more}, listed, (rows, columns))


def placed(model: Any, config: Any, names: list[str]) -> Iterator[TowerInput]:
    """Patches with their coordinates (x, y) beside them: Gemma 4."""
    import torch
    places = raster(ROWS, COLUMNS)
    ids = torch.tensor([[[x, y] for _, y, x in places]])
    pixels = torch.rand(1, len(places), 3 * one(config.patch_size) ** 2)
    yield TowerInput({names[0]: pixels, "pixel_position_ids": ids}, places)


def sequence(model: Any, config: Any, names: list[str]) -> Iterator[TowerInput]:
    """Tokens in a row, whose index is the only coordinate."""
    import torch
    places = [(0, 0, x) for x in range(COLUMNS)]
    yield TowerInput({"inputs_embeds": torch.randn(1, COLUMNS, config.hidden_size),
               "num_patches": COLUMNS // 2}, places, (1, COLUMNS))


def inputs_for(model: Any, config: Any) -> Iterator[TowerInput]:
    names = list(inspect.signature(model.forward).parameters)
    kind = sequence if "inputs_embeds" in names else placed if "pixel_position_ids" in names \
        else packed if {"grid_thw", "image_grid_thw"} & set(names) else pictures
    yield from kind(model, config, names)


@contextlib.contextmanager
def recorded(modeling: ModuleType, calls: list[tuple[Any, Any]]) -> Iterator[None]:
    """Wraps the functions of a module that rotate; nested calls count once."""
    import torch
    kept, inside = {}, [False]

    def wrap(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            outer, inside[0] = inside[0], True
            out = function(*args, **kwargs)
            inside[0] = outer
            if not outer:
                given = args[0] if args else next(iter(kwargs.values()))
                first = out if isinstance(out, torch.Tensor) else out[0]
                calls.append((given.detach(), first.detach()))
            return out
        return call
    for name, function in list(vars(modeling).items()):
        if APPLY.match(name) and inspect.isfunction(function):
            kept[name] = function
            setattr(modeling, name, wrap(function))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(modeling, name, function)


def by_token(x: Any, tokens: int) -> Any:
    """[..., tokens, ..., head_dim] as [tokens, rows, head_dim]; None if no axis has that size."""
    axes = [a for a in range(x.dim() - 1) if x.shape[a] == tokens]
    return x.movedim(axes[0], 0).reshape(tokens, -1, x.shape[-1]).double() if axes else None


def tower_class(modeling: ModuleType, config: Any) -> Iterator[type]:
    from transformers import PreTrainedModel
    for kind in classes_of(modeling, PreTrainedModel):
        own = getattr(kind, "config_class", None)
        parameters = list(inspect.signature(kind.forward).parameters)
        if own is type(config) and "input" not in parameters and "For" not in kind.__name__ \
                and "Backbone" not in kind.__name__ and parameters[1] != "attention_mask":
            yield kind


def window_order(config: Any, places: list[PatchIndex], windowed: bool) -> list[PatchIndex]:
    """The tokens in the order of windows, into which some towers sort them before attention."""
    import torch
    from transformers.vision_utils import get_vision_window_index
    if not windowed:
        return places
    if hasattr(config, "pos_emb_height"):
        merge, pixels = 1, config.pos_emb_height * config.patch_size
    else:
        merge, pixels = config.spatial_merge_size, config.window_size
    index, _ = get_vision_window_index(torch.tensor([[1, ROWS, COLUMNS]]), merge, pixels,
                                       config.patch_size)
    unit = merge ** 2
    return [places[int(i) * unit + j] for i in index for j in range(unit)]


def seen_by_first(modeling: ModuleType,
                  config: Any) -> tuple[set[PatchIndex], list[PatchIndex]] | None:
    """The patches whose attention in the first layer changes with the first patch, and all; None
    if no input fits."""
    import torch
    kind = next(tower_class(modeling, config))
    model = kind(config).eval().float()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    outputs: list[Any] = []
    attention = next(m for m in model.modules() if type(m).__name__.endswith("Attention"))
    attention.register_forward_hook(lambda module, args, out: outputs.append(
        (out if isinstance(out, torch.Tensor) else out[0]).detach()))
    for run in inputs_for(model, config):
        outputs.clear()
        first = next(iter(run.arguments))
        changed = {**run.arguments, first: run.arguments[first].clone()}
        patches = changed[first] if changed[first].shape[0] > 1 else changed[first][0]
        patches[0] += 1
        try:
            with torch.no_grad():
                model(**run.arguments)
                model(**changed)
        except Exception:  # pylint: disable=broad-except
            continue
        a, b = (by_token(x.unsqueeze(-1), len(run.places)) for x in outputs)
        moved = (a - b).abs().amax(dim=(1, 2)) > 0
        places = window_order(config, run.places, True)
        return {places[i] for i in range(len(places)) if moved[i]}, places
    return None


def run_tower(modeling: ModuleType, config: Any) -> list[Rotated]:
    """The rotations of a tower with this configuration. Throws the first error if no input fits."""
    import torch
    failures: list[Exception] = []
    torch.manual_seed(1)
    for kind in tower_class(modeling, config):
        model = kind(config).eval().float()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.05)
        for run in inputs_for(model, config):
            calls: list[tuple[Any, Any]] = []
            try:
                with recorded(modeling, calls), torch.no_grad():
                    model(**run.arguments)
            except Exception as error:  # pylint: disable=broad-except
                if not calls:
                    failures.append(error)
                    continue
            windowed = "get_vision_window_index" in vars(modeling) and hasattr(
                config, "fullatt_block_indexes") or hasattr(config, "pos_emb_height")
            places = window_order(config, run.places, windowed)
            found = [Rotated(before, after, places, run.grid) for x, y in calls
                     if (before := by_token(x, len(places))) is not None
                     and (after := by_token(y, len(places))) is not None]
            if found:
                return found
            failures.append(ValueError(f"{len(calls)} rotations, none of {len(places)} tokens"))
    raise failures[0] if failures else ValueError(
        f"no class of {modeling.__name__} takes {type(config).__name__}")
