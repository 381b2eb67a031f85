"""Runs a model on a few tokens and measures what each attention layer does with positions.

An attention function is registered with transformers' AttentionInterface. It sees queries, keys and
the scale of every layer as they reach the scores; hooks keep the outputs of the modules inside the
layer, among which are the queries and keys before their rotation. No function of the model is
wrapped and no buffer is read, so that the measurement does not depend on the model's code.

The model is left as it was. Parameters of 16 bits are float32 while their module runs, so that
their rounding does not hide an error of the rotation; buffers are used as they are.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from dataclasses import dataclass
from typing import Any, Iterator

import numpy as np

from .._errors import Error
from .befores import befores
from .masks import MaskRecords, Seen
from .reading import Reading
from .rotation import POSITIONS, Rotation, rotation_between, starts_alike

NAME = "sextant_doctor"
BATCH = 4
HEADS = 8  # at most so many heads are measured
FIRST_TOKEN = 10
TOLERANCE = {"float32": 1e-9, "float64": 1e-9, "float16": 1e-5, "bfloat16": 3e-4}
NOISE = {"float32": 2e-4, "float64": 2e-4, "float16": 4e-3, "bfloat16": 2e-2}  # of a phase


class ProbeError(Error):
    """The model cannot be run by doctor."""


@dataclass(frozen=True)
class LayerSeen:
    """The measurements of an attention layer.

    queries, keys: their rotations; None if none explains them. queries_known, keys_known: whether
    the values before are known in that case. shared_keys: the keys are those of an earlier layer.
    scale: the factor of q k that the attention function gets; None: not passed. mask: the result
    for its mask, or None. flash_window: the window that the function of a flash attention would
    use. positions: of the tokens. noise: the error of a phase, in radians.
    """

    name: str
    index: int | None
    kind: str | None
    head_dim: int
    queries: Rotation | None
    keys: Rotation | None
    queries_known: bool
    keys_known: bool
    shared_keys: bool
    scale: float | None
    mask: Seen | None
    flash_window: int | None
    positions: tuple[int, ...]
    noise: float


def kind_of(module: Any, index: int | None) -> str | None:
    kinds = getattr(getattr(module, "config", None), "layer_types", None)
    return kinds[index] if kinds and index is not None and index < len(kinds) else None


def index_of(module: Any, name: str) -> int | None:
    """The layer's number in its name; layer_idx counts attention modules where a layer has two."""
    found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    if found:
        return int(found[1])
    own = getattr(module, "layer_idx", None)
    return own if isinstance(own, int) else None


def array_of(tensor: Any) -> np.ndarray:
    import torch
    return tensor.detach().to("cpu", torch.float32, copy=True).numpy()


class Watch:
    """The hooks and the attention function of one run."""

    def __init__(self, model: Any, reading: Reading, positions: tuple[int, ...]) -> None:
        self.names = {module: name for name, module in model.named_modules()}
        self.reading, self.positions = reading, positions
        self.masks = MaskRecords()
        self.layers: list[LayerSeen] = []
        self.outputs: list[tuple[str, np.ndarray]] = []
        self.earlier_keys: list[np.ndarray] = []

    def hook(self) -> list[Any]:
        return [module.register_forward_hook(self._after(name))
                for module, name in self.names.items() if name]

    def _after(self, name: str) -> Any:
        def keep(_: Any, __: Any, output: Any) -> None:
            if hasattr(output, "is_floating_point") and output.is_floating_point() \
                    and output.dim() in (3, 4) and output.shape[0] == BATCH:
                self.outputs.append((name, array_of(output)))
        return keep

    def attention(self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None,
                  scaling: Any = None, dropout: float = 0.0, **named: Any) -> tuple[Any, None]:
        """The attention function. Each query gets the value at its own position: rotations of later
        layers do not depend on the values."""
        del dropout
        name = self.names.get(module, "")
        inside = [array for path, array in self.outputs if path.startswith(f"{name}.")]
        self.outputs.clear()
        if query.shape[-2] == len(self.positions) == key.shape[-2]:
            self.layers.append(self._measured(module, name, inside, query, key, scaling,
                                              attention_mask, named.get("sliding_window")))
        value = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
        return value[:, :, -query.shape[2]:].transpose(1, 2).contiguous(), None

    def _measured(self, module: Any, name: str, inside: list[np.ndarray], query: Any, key: Any,
                  scaling: Any, mask: Any, flash_window: Any) -> LayerSeen:
        index, kind_name = index_of(module, name), str(query.dtype).removeprefix("torch.")
        kind = kind_of(module, index)
        tolerance = TOLERANCE.get(kind_name, TOLERANCE["bfloat16"])
        group = self.reading.group_of(index, kind)
        part = None
        if group and group.rotated_channels:
            first, last = group.rotated_channels
            part = (first, last - first + 1)
        q, k = array_of(query), array_of(key)
        queries, known = best_rotation(inside, q, k.shape[1], part, tolerance)
        keys, keys_known = best_rotation(inside, k, q.shape[1], part, tolerance)
        shared = any(k.shape == e.shape and np.array_equal(k, e) for e in self.earlier_keys)
        self.earlier_keys = self.earlier_keys[-8:] + [k]
        scale = float(scaling) if isinstance(scaling, (int, float)) else None
        return LayerSeen(name, index, kind, q.shape[-1], queries, None if shared else keys,
                         known, keys_known, shared, scale,
                         self.masks.of(mask) if mask is not None else None,
                         flash_window if isinstance(flash_window, int) else None,
                         self.positions, NOISE.get(kind_name, NOISE["bfloat16"]))


def best_rotation(outputs: list[np.ndarray], after: np.ndarray, other_heads: int,
                  part: tuple[int, int] | None, tolerance: float
                  ) -> tuple[Rotation | None, bool]:
    """The rotation from one of the outputs to `after` [batch, heads, positions, channels]. A fit
    that rotates is preferred, since a norm behind the rotation has the same values as `after`, and
    one whose gain no norm hides. None: no output fits; the second value then says whether one of
    them had the same values at position 0, so that it was the array before the rotation."""
    heads = np.unique(np.linspace(0, after.shape[1] - 1, HEADS).astype(int))

    def samples(array: np.ndarray) -> np.ndarray:
        some = array[:, heads].astype(np.float64)
        return some.reshape(-1, *some.shape[-2:])
    still, known, last = None, False, samples(after)
    for before in befores(outputs, after.shape, other_heads, part):
        first = samples(before)
        found = rotation_between(first, last, part, tolerance)
        known = known or starts_alike(first, last, tolerance)
        if found.misfit <= tolerance:
            if found.rotates:
                return found, True
            if still is None or still.normalised:
                still = found
    return still, known


@contextlib.contextmanager
def _float32_parameters(model: Any) -> Iterator[None]:
    """While a module runs, its own parameters of 16 bits are float32."""
    import torch
    kept: list[tuple[Any, str, Any]] = []
    handles = []

    def widen(module: Any, _: Any) -> None:
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.dtype in (torch.float16, torch.bfloat16):
                kept.append((module, name, parameter))
                module._parameters[name] = torch.nn.Parameter(parameter.float(), False)

    def restore(module: Any, *_: Any) -> None:
        for entry in [e for e in kept if e[0] is module]:
            module._parameters[entry[1]] = entry[2]
            kept.remove(entry)
    for module in model.modules():
        if module._parameters:
            handles.append(module.register_forward_pre_hook(widen))
            handles.append(module.register_forward_hook(restore))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module, name, parameter in reversed(kept):
            module._parameters[name] = parameter


# The run in progress. The interfaces keep the functions that are registered, which therefore hold
# no model.
_running: list[Any] = []


def _attend(*arguments: Any, **named: Any) -> tuple[Any, None]:
    return _running[-1].attention(*arguments, **named)


def _mask(*arguments: Any, **named: Any) -> Any:
    return _running[-1].masks(*arguments, **named)


@contextlib.contextmanager
def _attention_of(model: Any, watch: Any) -> Iterator[None]:
    """All configurations of the model select doctor's attention."""
    from transformers import AttentionInterface, AttentionMaskInterface
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, _mask)
    configs = {id(m.config): m.config for m in model.modules()
               if hasattr(getattr(m, "config", None), "_attn_implementation_internal")}
    configs.setdefault(id(model.config), model.config)
    before = [(c, c._attn_implementation_internal) for c in configs.values()]
    watch.implementations = {id(config): name for config, name in before}
    _running.append(watch)
    try:
        for config in configs.values():
            config._attn_implementation_internal = NAME
        yield
    finally:
        _running.pop()
        for config, name in before:
            config._attn_implementation_internal = name


@contextlib.contextmanager
def _buffers_kept(model: Any) -> Iterator[None]:
    """Dynamic stretches replace buffers and the length that these are for."""
    members = ("max_seq_len_cached", "attention_scaling")
    kept = [(m, dict(m._buffers), {n: v for n, v in vars(m).items() if n.endswith(members)})
            for m in model.modules() if m._buffers]
    try:
        yield
    finally:
        for module, buffers, values in kept:
            module._buffers.update(buffers)
            vars(module).update(values)


def tokens_for(model: Any, rows: int, count: int) -> Any:
    import torch
    embeddings = model.get_input_embeddings()
    vocabulary = getattr(embeddings, "num_embeddings", None) or model.config.vocab_size
    numbers = torch.arange(rows * count) % max(1, vocabulary - FIRST_TOKEN)
    return (numbers + min(FIRST_TOKEN, vocabulary - 1)).reshape(rows, count)


def positions_for(longest: int | None) -> tuple[int, ...]:
    """Positions of the tokens, below the longest length that the model supports."""
    return tuple(p for p in POSITIONS if not longest or p < longest)


@contextlib.contextmanager
def running(model: Any, watch: Any) -> Iterator[None]:
    """The model in evaluation mode with the attention and the masks of `watch`; afterwards it is as
    it was."""
    import torch
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad(), _buffers_kept(model), _attention_of(model, watch), \
                _float32_parameters(model):
            model.eval()
            yield
    finally:
        for module, trains in modes:
            module.training = trains


def probe(model: Any, reading: Reading, positions: tuple[int, ...] | None) -> list[LayerSeen]:
    """Runs the model, whose parameters are on one device, on tokens at these positions; None: as
    the model counts them. Returns its attention layers in the order of their calls. Raises
    ProbeError if the model cannot run so or does not use transformers' attention interface."""
    import torch
    named = inspect.signature(model.forward).parameters
    accepts = any(p.kind is p.VAR_KEYWORD for p in named.values())
    length = len(positions or POSITIONS)
    device = next(model.parameters()).device
    tokens = tokens_for(model, BATCH, length).to(device)
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "use_cache": False}
    if positions is not None and ("position_ids" in named or accepts):
        given["position_ids"] = torch.tensor(positions, device=device).expand(BATCH, -1)
    given = {name: value for name, value in given.items() if accepts or name in named}
    watch = Watch(model, reading,
                  positions if positions and "position_ids" in given else tuple(range(length)))
    try:
        with running(model, watch):
            handles = watch.hook()
            try:
                model(**given)
            finally:
                for handle in handles:
                    handle.remove()
    except Exception as error:
        raise ProbeError(f"the model's forward: {type(error).__name__}: {error}") from error
    if not watch.layers:
        raise ProbeError(f"{type(model).__name__} has no layer that calls an attention function of "
                         "transformers' AttentionInterface")
    return watch.layers
