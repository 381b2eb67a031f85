"""Runs a small model and records, per attention layer, whether and how it rotates its queries.

The functions of a model's module that apply rotations are wrapped, and so is its attention
function. Forward hooks on the modules associate each call with its layer.
"""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Iterator

from .models import ATTENTION_NAME, classes_of
from .shrink import TOKENS

APPLIES = re.compile(r"^_?apply_\w*(rot|rope)\w*$|^rotate_queries_or_keys$")
EAGER = re.compile(r"^eager_\w*attention_forward\w*$")
LINEAR = re.compile(r"Linear|Lightning|Delta|Mamba|KDA|Conv|SSM|RetNet|Recurrent")
CROSS = re.compile(r"cross|encoder_attn|encdec", re.IGNORECASE)
QUERY = re.compile(r"^(q_proj|query\w*|q_a_proj|q_b_proj|wq\w*|Wq|to_q|linear_q)$")
PROJECTS = re.compile(
    r"^(qkv\w*|Wqkv|c_attn|k_proj|kv_proj|kv_a\w*|in_proj\w*|wqkv)$|" + QUERY.pattern)
SCALES = ("scaling", "softmax_scale", "scale", "inv_norm_factor", "norm_factor")
LARGEST = 0.5e9  # the largest number of parameters of a model that is run


@dataclass
class LayerSeen:
    """An attention layer of a run."""

    name: str
    kind: str  # its class
    calls: int = 0
    # The angles of position 1, in the order of (cos, sin).
    angles: list[float] = field(default_factory=list)
    gain: float = 1.0
    width: int = 0  # channels of the rotated tensor
    pair_of_first: list[int] = field(default_factory=list)
    moved: tuple[int, int] | None = None  # first and last channel that change
    scale: float | None = None  # the factor of q k in the attention function
    before: float = 1.0  # the factor of queries before the rotation
    window: int | None = None
    has_mask: bool = False
    rotated: Any = None  # the query after its rotation
    projected: float | None = None  # norm of the projected query
    projected_size: int = 0

    @property
    def index(self) -> int | None:
        found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", self.name)
        return int(found[1]) if found else None

    @property
    def rotates(self) -> bool:
        return any(abs(angle) > 0 for angle in self.angles)

    @property
    def pairing(self) -> str | None:
        if not self.pair_of_first:
            return None
        return "interleaved" if self.pair_of_first[0] == 1 else "half-split"


def row_of_position_1(tensor: Any) -> Any:
    """The row of position 1 of a tensor with TOKENS positions along one of its axes."""
    values = tensor.detach().double()
    axis = next((a for a in range(values.dim() - 1) if values.shape[a] == TOKENS), None)
    if axis is None:
        raise ValueError(f"no axis of positions in {tuple(values.shape)}")
    values = values.select(axis, 1)
    return values.reshape(-1, values.shape[-1])[0]


def pairs_and_channels(call: Callable[[Any], Any], query: Any) -> tuple[list[int], tuple | None]:
    """The offsets of the channels paired with the first rotated one, and the range of rotated
    channels, or None if they are not contiguous."""
    import torch

    def reached(index: int) -> list[int]:
        """The output channels that depend on this input channel, at any position."""
        one = torch.zeros_like(query)
        one[..., index] = 1
        out = call(one)
        return out.reshape(-1, out.shape[-1]).abs().amax(0).gt(1e-6).nonzero().flatten().tolist()

    width = query.shape[-1]
    goes = [reached(i) for i in range(width)]
    rotated = [i for i in range(width) if len(goes[i]) > 1]
    if not rotated:
        return [], None
    first = rotated[0]
    mates = [i - first for i in rotated if i != first and goes[i] == goes[first]]
    span = (rotated[0], rotated[-1])
    return mates, span if len(rotated) == span[1] - span[0] + 1 else None


def measured_scale(function: Callable, args: tuple, named: dict[str, Any]) -> float | None:
    """The factor of q k, measured from the weights that an attention function returns."""
    import torch
    bound = inspect.signature(function).bind(*args, **named)
    given = bound.arguments
    scaling = given.get("scaling")
    step = min(4.0, 0.25 / abs(scaling)) if isinstance(scaling, float) and scaling else 1.0
    query, key = torch.zeros_like(given["query"]), torch.zeros_like(given["key"])
    query[..., 0] = 1
    keys = key.shape[-2]
    key[..., 0] = torch.arange(keys) * (step / keys)
    given["query"], given["key"], given["attention_mask"] = query, key, None
    with torch.no_grad():
        weights = function(*bound.args, **bound.kwargs)[1].double()
    slope = torch.log(weights[..., -1, keys - 1] / weights[..., -1, 0]) / (step * (keys - 1) / keys)
    slope = float(slope.flatten()[0])
    return slope if abs(slope) < 1e6 else None


def window_of(mask: Any) -> tuple[bool, int | None]:
    """Whether a mask is causal, and its window: the number of visible keys if it is limited."""
    seen = mask[0, 0] if mask.dtype == mask.bool().dtype else mask[0, 0] > -1e4
    counts = seen.sum(-1).tolist()
    if len(counts) != TOKENS or seen.shape[-1] != TOKENS or counts[0] != 1:
        return False, None
    sliding = counts[-1] == counts[-2] < TOKENS - 1
    return True, counts[-1] if sliding else None


class Watch:
    """Wraps the functions of a modeling module while one of its models runs."""

    def __init__(self, modeling: ModuleType) -> None:
        self.stack: list[str] = []
        self.layers: dict[str, LayerSeen] = {}
        self.stray = 0  # rotations outside of attention modules
        self.shapes: dict[tuple, tuple[list[int], tuple | None]] = {}
        self.modeling = modeling
        self.originals: dict[str, Callable] = {}
        for name, function in list(vars(modeling).items()):
            if inspect.isfunction(function) and APPLIES.match(name):
                self.wrap(name, function, self.see_rotation)
            elif inspect.isfunction(function) and EAGER.match(name):
                self.wrap(name, function, self.see_attention)

    def wrap(self, name: str, function: Callable, see: Callable) -> None:
        def wrapped(*args: Any, **named: Any) -> Any:
            result = function(*args, **named)
            try:
                see(function, args, named, result)
            except Exception:  # pylint: disable=broad-except
                pass  # the audit continues without this observation
            return result
        self.originals[name] = function
        setattr(self.modeling, name, wrapped)

    def undo(self) -> None:
        for name, function in self.originals.items():
            setattr(self.modeling, name, function)

    def here(self) -> LayerSeen | None:
        return next((self.layers[n] for n in reversed(self.stack) if n in self.layers), None)

    def see_rotation(self, function: Callable, args: tuple, named: dict, result: Any) -> None:
        import torch
        layer = self.here()
        if layer is None:
            self.stray += 1
            return
        if layer.angles:
            return
        bound = inspect.signature(function).bind(*args, **named)
        bound.apply_defaults()
        given = bound.arguments
        tensors = {k: v for k, v in given.items() if isinstance(v, torch.Tensor)}
        cos, sin = given.get("cos"), given.get("sin")
        if isinstance(given.get("position_embeddings"), tuple):
            cos, sin = given["position_embeddings"]
        turn = next((v for v in tensors.values() if torch.is_complex(v)), None)
        if turn is not None:
            cos, sin = turn.real, turn.imag
        if isinstance(cos, torch.Tensor):
            c, s = row_of_position_1(cos), row_of_position_1(sin)
            layer.angles = torch.atan2(s, c).tolist()
            layer.gain = float(torch.sqrt(c * c + s * s).median())
        name, query = next((k, v) for k, v in tensors.items()
                           if v is not cos and v is not sin and not torch.is_complex(v))
        layer.width = query.shape[-1]
        layer.rotated = result[0] if isinstance(result, tuple) else result
        layer.before = self.factor_before(layer, query)
        plain = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if any(p.kind in plain for p in inspect.signature(function).parameters.values()):
            return

        def through(value: Any) -> Any:
            with torch.no_grad():
                out = function(**{**given, name: value})
            return out[0] if isinstance(out, tuple) else out
        key = (function.__name__, layer.width, tuple(layer.angles))
        if key not in self.shapes:
            self.shapes[key] = pairs_and_channels(through, query)
        layer.pair_of_first, layer.moved = self.shapes[key]

    def see_attention(self, function: Callable, args: tuple, named: dict, _: Any) -> None:
        import torch
        layer = self.here()
        if layer is None or layer.scale is not None:
            return
        given = inspect.signature(function).bind(*args, **named).arguments
        query, mask = given["query"], given.get("attention_mask")
        scaling = given.get("scaling")
        layer.scale = float(scaling) if isinstance(scaling, (int, float)) else None
        if isinstance(mask, torch.Tensor) and mask.dim() == 4:
            layer.has_mask, layer.window = window_of(mask)
        rotated = layer.rotated
        if rotated is None:
            layer.before = self.factor_before(layer, query)
        if layer.moved and rotated is not None and rotated.shape[-1] < query.shape[-1]:
            layer.moved = self.place(query, rotated, layer.moved)
        try:
            layer.scale = measured_scale(function, args, named) or layer.scale
        except Exception:  # pylint: disable=broad-except
            pass  # keep the value of the argument

    @staticmethod
    def factor_before(layer: LayerSeen, query: Any) -> float:
        """The factor between the projection and the query, if no norm lies between them."""
        if not layer.projected or query.numel() != layer.projected_size:
            return 1.0
        return float(query.double().norm()) / layer.projected

    @staticmethod
    def place(query: Any, rotated: Any, moved: tuple[int, int]) -> tuple[int, int] | None:
        """The range of the rotated channels within the whole query, or None if not found."""
        size = rotated.shape[-1]
        flat = rotated.reshape(-1, size).double().sum(0)
        for start in range(query.shape[-1] - size + 1):
            part = query[..., start:start + size]
            if part.numel() == rotated.numel() and bool(
                    (part.reshape(-1, size).double().sum(0) - flat).abs().max() < 1e-6):
                return moved[0] + start, moved[1] + start
        return None

    def hook(self, model: Any) -> list[Any]:
        handles = []
        for name, module in model.named_modules():
            kind = type(module).__name__
            children = dict(module.named_children())
            if ATTENTION_NAME.search(kind) and any(PROJECTS.match(n) for n in children):
                self.layers[name] = LayerSeen(name, kind)
                own = next((c for n, c in children.items() if QUERY.match(n)), None)
                if own is not None and not any("norm" in n for n in children):
                    handles.append(own.register_forward_hook(self.seen_query(name)))

            def push(_: Any, __: Any, name: str = name) -> None:
                self.stack.append(name)
                if name in self.layers:
                    self.layers[name].calls += 1

            def pop(_: Any, __: Any, ___: Any) -> None:
                self.stack.pop()
            handles += [module.register_forward_pre_hook(push), module.register_forward_hook(pop)]
        return handles

    def seen_query(self, name: str) -> Callable:
        def seen(_: Any, __: Any, out: Any) -> None:
            if hasattr(out, "numel"):
                self.layers[name].projected = float(out.double().norm())
                self.layers[name].projected_size = out.numel()
        return seen

    def run(self, model: Any, inputs: Iterator[dict[str, Any]]) -> str:
        """Runs the model on the first inputs that it accepts. Returns the error if it accepts
        none, otherwise an empty string."""
        import torch
        handles, failure = self.hook(model), ""
        kinds = {name: layer.kind for name, layer in self.layers.items()}
        try:
            for given in inputs:
                self.stack.clear()
                self.layers = {name: LayerSeen(name, kind) for name, kind in kinds.items()}
                try:
                    with torch.no_grad():
                        model(**given)
                    self.fill_scales(model)
                    return ""
                except Exception as error:  # pylint: disable=broad-except
                    failure = failure or f"forward: {type(error).__name__}: {error}"[:160]
        finally:
            for handle in handles:
                handle.remove()
        return failure

    def fill_scales(self, model: Any) -> None:
        """Takes the scale from the members of a module whose attention function was not called."""
        for name, module in model.named_modules():
            layer = self.layers.get(name)
            if layer is None or layer.scale is not None:
                continue
            values = (getattr(module, member, None) for member in SCALES)
            layer.scale = next((float(v) for v in values if isinstance(v, (int, float))
                                and not isinstance(v, bool)), None)

    def attention_layers(self) -> list[LayerSeen]:
        return [layer for layer in self.layers.values() if layer.calls
                and not LINEAR.search(layer.kind) and not CROSS.search(layer.name + layer.kind)]


def possible_inputs(config: Any) -> Iterator[dict[str, Any]]:
    import torch
    token_ids = torch.arange(TOKENS)[None] % 7 + 3
    positions = torch.arange(TOKENS)[None]
    mask = torch.ones(1, TOKENS, dtype=torch.long)
    yield {"input_ids": token_ids, "use_cache": False}
    yield {"input_ids": token_ids}
    yield {"input_ids": token_ids, "decoder_input_ids": token_ids}
    yield {"input_ids": token_ids, "attention_mask": mask, "position_ids": positions}
    width = getattr(config, "hidden_size", 64)
    if isinstance(width, int):
        some = torch.randn(1, TOKENS, width)
        yield {"inputs_embeds": some}
        yield {"inputs_embeds": some, "attention_mask": mask}
        yield {"hidden_states": some}
        yield {"inputs_embeds": some, "position_ids": positions}


def models_for(config_class: type, modeling: ModuleType) -> list[type]:
    """The model classes of this configuration, those without a task head first."""
    from transformers import PreTrainedModel
    models = [m for m in classes_of(modeling, PreTrainedModel)
              if m.config_class is config_class and "PreTrained" not in m.__name__]
    bare = re.compile(r"(TextModel|Model|Decoder|Encoder|Backbone)$")
    return sorted(models, key=lambda m: (not bare.search(m.__name__), "For" in m.__name__,
                                         len(m.__name__)))


def probe(config: Any, modeling: ModuleType) -> tuple[list[LayerSeen], str]:
    """Runs a model of this configuration. Returns its attention layers, or the reason why it did
    not run."""
    import torch
    why = "no model class takes this configuration"
    for model_class in models_for(type(config), modeling)[:3]:
        watch = Watch(modeling)
        try:
            torch.manual_seed(0)
            with torch.device("meta"):
                size = sum(p.numel() for p in model_class(copy.deepcopy(config)).parameters())
            if size > LARGEST:
                why = f"{model_class.__name__}: {size / 1e9:.1f}e9 parameters even when shrunk"
                continue
            own = copy.deepcopy(config)
            own._attn_implementation = "eager"  # pylint: disable=protected-access
            model = model_class(own).eval().float()
            failure = watch.run(model, possible_inputs(own))
            layers = watch.attention_layers()
            if not failure and layers:
                return layers, ""
            why = f"{model_class.__name__}: {failure or 'no attention layer seen'}"
        except Exception as error:  # pylint: disable=broad-except
            why = f"{model_class.__name__}: {type(error).__name__}: {error}"[:200]
        finally:
            watch.undo()
    return [], why
