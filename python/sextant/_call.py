"""The record of one call of attention: its arguments, in the forms that users have for them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import numbers
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Union

import torch
from torch import Tensor

from sextant._errors import InvalidType, InvalidValue
from sextant._old_names import warn_of_old_name
from sextant.cache import Cache

# Cumulative lengths of packed sequences: for all rows of a batch, or a list for each row.
Lengths = Union[Sequence[int], Tensor, Sequence[Sequence[int]], Sequence[Tensor]]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class CallArguments(TypedDict, total=False):
    """The types of a call's keywords, beside return_lse, which decides the type of the result.
    ``Call`` has their defaults."""

    layer: int
    causal: bool | None
    first_query: int | None
    first_key: int
    mask: Tensor | None
    packed_queries: Lengths | None
    packed_keys: Lengths | None
    query_segments: Tensor | None
    key_segments: Tensor | None
    query_positions: Tensor | None
    key_positions: Tensor | None
    scale: float | None
    sink: Tensor | None
    window: int | Sequence[int] | None
    key_bias: Tensor | None
    cache: Cache | None
    sequences: Sequence[int] | None
    softcap: float | None
    dropout_p: float


@dataclasses.dataclass
class Call:
    """The arguments of a call beside q, k and v. ``sextant.attention`` says what they mean; the
    calls of ``Method`` and ``Encoding`` have the same."""

    layer: int = 0
    causal: bool | None = None
    first_query: int | None = None
    first_key: int = 0
    mask: Tensor | None = None
    packed_queries: Any = ()
    packed_keys: Any = ()
    query_segments: Tensor | None = None
    key_segments: Tensor | None = None
    query_positions: Tensor | None = None
    key_positions: Tensor | None = None
    scale: float | None = None
    sink: Tensor | None = None
    window: int | Sequence[int] | None = None
    key_bias: Tensor | None = None
    return_lse: bool = False
    cache: Cache | None = None
    sequences: Sequence[int] | None = None
    softcap: float | None = None
    dropout_p: float = 0.0

    def __post_init__(self) -> None:
        self.dropout_p = check_number("dropout_p", self.dropout_p, "at least 0 and below 1",
                                      lambda p: 0 <= p < 1)
        least, most = 1e-30, 1e30  # beyond these the steps of float32 leave its range
        if self.softcap is not None:
            self.softcap = check_number("softcap", self.softcap,
                                        f"a number from {least} to {most}, or None",
                                        lambda x: least <= x <= most)
        if self.causal is not None and not isinstance(self.causal, bool):
            raise InvalidType(f"causal: expected True, False or None, but got {self.causal!r}")
        self.packed_queries = as_lengths("packed_queries", self.packed_queries)
        self.packed_keys = as_lengths("packed_keys", self.packed_keys)
        if self.cache is None and self.sequences is not None:
            raise InvalidValue("sequences: expected None without a cache, but got a list")
        if self.cache is not None and not isinstance(self.cache, Cache):
            raise InvalidType("cache: expected a sextant.Cache, but got "
                              f"{type(self.cache).__name__}")

    def asks(self, name: str) -> bool:
        """Whether an argument asks for more than its default does."""
        value, default = getattr(self, name), _DEFAULTS[name]
        if value is None or value is default:
            return False
        if name in ("packed_queries", "packed_keys"):
            return is_packed(value)
        return not isinstance(value, (bool, int, float)) or value != default

    def refuse_beside_cache(self) -> None:
        """With a cache, the sequences determine positions and visibility."""
        for name in _NOT_CACHED:
            value = getattr(self, name)
            if value is None or value is _DEFAULTS[name]:
                continue  # most of them, in each step of decoding
            if self.asks(name) and not (name == "causal" and self.causal):
                default = {"causal": True, "packed_queries": [], "packed_keys": []}.get(
                    name, _DEFAULTS[name])
                raise InvalidValue(f"attention: {name}: expected {default}, as a cache is there, "
                                   "but got another value")


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Call)}
_NOT_CACHED = ("causal", "first_query", "first_key", "mask", "packed_queries", "packed_keys",
               "query_segments", "key_segments", "query_positions", "key_positions", "dropout_p",
               "key_bias", "return_lse")


def with_call(function: _Function) -> _Function:
    """function(..., **call) with the fields of ``Call`` in the signature that help() shows."""
    own = [p for p in inspect.signature(function).parameters.values()
           if p.kind != inspect.Parameter.VAR_KEYWORD]
    call = [inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                              annotation=field.type) for field in dataclasses.fields(Call)]
    function.__signature__ = inspect.Signature(own + call)  # type: ignore[attr-defined]
    return function


def call_of(function: Callable[..., Any], given: Mapping[str, Any],
            method: str | None = None) -> Call:
    """The record of the keywords of a call of ``function``, a result of ``with_call``. Raises a
    TypeError for others, which lists the function's keywords, and the options of a method."""
    unknown = [name for name in given if name not in _DEFAULTS]
    if unknown:
        _refuse_unknown(function, unknown[0], method)
    return Call(**given)


# Arguments that other libraries have, and their counterparts here.
_COUNTERPARTS = {
    "attn_mask": "mask",
    "average_attn_weights": "return_lse, as no matrix of weights is built",
    "bias": "a method, or key_bias",
    "cu_seqlens_k": "packed_keys",
    "cu_seqlens_q": "packed_queries",
    "enable_gqa": "k and v with fewer heads, which need no argument",
    "is_causal": "causal",
    "key_padding_mask": "mask, [batch, keys], True for keys that are seen",
    "need_weights": "return_lse, as no matrix of weights is built",
    "softmax_scale": "scale",
    "window_size": "window",
}


def constant(function: _Function) -> _Function:
    """torch.compile treats the result as a constant when it traces a call."""
    if hasattr(torch, "compiler"):
        return torch.compiler.assume_constant_result(function)  # type: ignore
    return function


def compiling() -> bool:
    """Whether torch.compile or torch.export traces this call."""
    compiler = getattr(torch, "compiler", None)
    return bool(compiler is not None and hasattr(compiler, "is_compiling")
                and compiler.is_compiling())


@constant
def options_text(options: Mapping[str, Any]) -> str:
    """Options as JSON. torch.compile serializes them once, when it traces a call."""
    return json.dumps(options) if options else "{}"


@functools.lru_cache(maxsize=None)
def _methods() -> dict[str, tuple[str, ...]]:
    return {name: tuple(one["options"])
            for name, one in json.loads(torch.ops.sextant.methods()).items()}


@constant
def options_known(method: str) -> tuple[str, ...] | None:
    """The names of a method's options; None for an unknown method."""
    return _methods().get(method)


def rename_options(options: dict[str, Any]) -> None:
    """Gives options of a method their names now, with a warning of each old one."""
    for old_name, name in (("float32_speeds", "float32_frequencies"),):  # old name, name
        if old_name not in options:
            continue
        if name in options:
            raise InvalidType(f"{old_name}: expected only {name}, its name now, but got both")
        warn_of_old_name(old_name, name, 4)
        options[name] = options.pop(old_name)


def _refuse_unknown(function: Callable[..., Any], name: str, method: str | None) -> None:
    known = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind == inspect.Parameter.KEYWORD_ONLY]
    lists = f"Arguments: {', '.join(known)}."
    if method is not None:
        options = ", ".join(options_known(method) or ()) or "none"
        lists += f" Options of the method {method}, for options={{...}}: {options}."
    other = f" (see {_COUNTERPARTS[name]})" if name in _COUNTERPARTS else ""
    raise InvalidType(f"{name}: expected no argument of this name{other}, but got one. {lists}")


def method_options(function: Callable[..., Any], method: str, options: Mapping[str, Any] | None,
                   given: dict[str, Any]) -> dict[str, Any]:
    """The options of a method in a call of ``function``. Options among the keywords ``given``, the
    old spelling, are taken out of them with a warning."""
    rename_options(given)
    own = dict(options or {})
    rename_options(own)
    known = options_known(method)
    if known is None:
        method_parameters(method, [1] * 6, "{}")  # raises its error
        known = ()
    old = {name: given.pop(name) for name in list(given) if name in known
           and name not in _DEFAULTS}
    if options is None or (old and "options" in known):
        for name in ("scale", "window"):
            if name in known and given.get(name) is not None:
                old[name] = given.pop(name)
    if old:
        _warn_of_options(function.__name__, method, ", ".join(map(repr, old)))
        if options is not None and "options" not in known:
            raise InvalidType(f"{next(iter(old))}: expected it among options, but got a keyword "
                              "beside options")
        if options is not None:
            old["options"] = own
        return old
    for name in own:
        if name not in known:
            _refuse_unknown(function, name, method)
    return own


def method_parameters(name: str, shape: list[int], options: str) -> tuple[str, list[Tensor]]:
    """The parameters of a method: their descriptions as JSON, and initial values. Raises a
    ValueError for an unknown method, and for options or sizes that it does not have."""
    try:
        specs, initial = torch.ops.sextant.method_parameters(name, shape, options)
    except RuntimeError as error:
        raise InvalidValue(str(error)) from None
    return specs, initial


@constant
def _warn_of_options(function: str, method: str, names: str) -> None:
    warnings.warn(f"sextant.{function}: pass the options of the method {method} as "
                  f"options={{...}}: a later version has {names} no longer as keywords, and scale "
                  "and window are then those of the call alone", FutureWarning, stacklevel=4)


def shape_of_call(q: Tensor, k: Tensor, layers: int, width: int | None,
                  train_length: int) -> list[int]:
    """The shape of a method in the operators; the width is by default that of all heads of q."""
    heads, head_dim = q.size(1), q.size(3)
    return [layers, heads, k.size(1), head_dim, heads * head_dim if width is None else width,
            train_length]


def check_tensors(owner: str, **tensors: Any) -> None:
    """Raises an error unless all are tensors of four dimensions."""
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            is_tensor = isinstance(x, torch.Tensor)
            raise (InvalidValue if is_tensor else InvalidType)(
                f"{owner}{name}: expected a tensor [batch, heads, rows, columns], but got "
                f"{list(x.shape) if is_tensor else type(x).__name__}")


def check_number(name: str, value: Any, expected: str, fits: Callable[[float], bool]) -> float:
    """value as a float. Raises an error unless it is a number (no bool) that fits."""
    is_number = isinstance(value, (float, numbers.Real)) and not isinstance(value, bool)
    if not is_number or not fits(value):
        raise (InvalidValue if is_number else InvalidType)(
            f"{name}: expected {expected}, but got {value!r}")
    return float(value)


def window_sides(window: int | Sequence[int] | None, causal: bool) -> list[int]:
    """[left, right] of a window: the keys at distances -right .. left; [] for none."""
    if window is None:
        return []
    if isinstance(window, int) and not isinstance(window, bool):
        if window < 1:
            raise InvalidValue(f"window: expected at least 1 key, but got {window}")
        return [window - 1, 0 if causal else window - 1]
    sides = list(window) if isinstance(window, (list, tuple)) else None
    if sides is None or len(sides) != 2 or not all(
        isinstance(side, int) and not isinstance(side, bool) for side in sides
    ):
        raise InvalidType(
            "window: expected a number of keys or (left, right), distances with -1 for no limit, "
            f"but got {window!r}"
        )
    return sides


def is_packed(lengths: Any) -> bool:
    return lengths.numel() > 0 if isinstance(lengths, torch.Tensor) else len(lengths) > 0


def as_lengths(name: str, lengths: Any) -> Any:
    """Cumulative lengths as they are given (None, a list or tuple, an array, a tensor), as a list
    of integers, or as a list of such lists, one for each row of the batch. A tensor that
    torch.compile traces is returned as it is."""
    if lengths is None:
        return []
    if isinstance(lengths, torch.Tensor):
        if lengths.dim() not in (1, 2) or lengths.dtype not in (torch.int32, torch.int64):
            raise InvalidValue(
                f"{name}: expected int32 or int64 [sequences + 1] or [batch, sequences + 1], but "
                f"got {str(lengths.dtype).removeprefix('torch.')} {list(lengths.shape)}"
            )
        if compiling() and lengths.dim() == 2:
            raise InvalidValue(
                f"{name}: expected lists for each row of the batch, as torch.compile does not know "
                "the values of a tensor, but got a tensor"
            )
        if compiling():
            return lengths
    values = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    try:
        return [operator.index(value) if hasattr(value, "__index__") and not _has_rows(value)
                else [operator.index(one) for one in
                      (value.tolist() if hasattr(value, "tolist") else value)]
                for value in values]
    except TypeError as error:
        raise InvalidType(f"{name}: expected cumulative lengths, integers or a list of integers "
                          f"for each row of the batch, but got {lengths!r}") from error


def _has_rows(value: Any) -> bool:
    """A tensor or array of one element has __index__, too."""
    return bool(getattr(value, "ndim", 0) > 0)


def by_row(packed_queries: Any, packed_keys: Any) -> bool:
    """Whether lengths of as_lengths() are a list for each row of the batch."""
    queries, keys = (
        not isinstance(lengths, torch.Tensor) and any(isinstance(row, list) for row in lengths)
        for lengths in (packed_queries, packed_keys)
    )
    if queries != keys and is_packed(packed_queries) and is_packed(packed_keys):
        raise InvalidValue(
            "packed_keys: expected lengths for all rows of the batch or for each, as "
            "packed_queries, but got the other form"
        )
    return queries or keys


def check_cumulative(name: str, lengths: list[int], rows: int) -> None:
    """Raises an error unless cumulative lengths start at 0, never fall and end at rows."""
    falls = any(b < a for a, b in zip(lengths, lengths[1:]))
    if not lengths or lengths[0] != 0 or lengths[-1] != rows or falls:
        raise InvalidValue(f"{name}: expected cumulative lengths that start at 0, never fall and "
                           f"end at {rows}, but got {lengths}")


def packing(packed_queries: Any, packed_keys: Any) -> dict[str, Any]:
    """The arguments of the operators for lengths of as_lengths(). Traced tensors are passed on, as
    their values are not known yet."""
    return {
        f"cumulative_{side}" if isinstance(lengths, torch.Tensor) else f"packed_{side}": lengths
        for side, lengths in (("queries", packed_queries), ("keys", packed_keys))
    }


def refuse_unseen(queries: int, keys: int, arguments: Mapping[str, Any]) -> None:
    """Raises an error if queries would see no key because nothing was said about their
    positions: more queries than keys, in the whole call or in a packed sequence."""
    pairs = [(queries, keys)]
    if is_packed(arguments.get("packed_queries", ())) and is_packed(
        arguments.get("packed_keys", ())
    ):
        lengths = ([b - a for a, b in zip(sums, sums[1:])]
                   for sums in (arguments["packed_queries"], arguments["packed_keys"]))
        pairs = list(zip(*lengths))
    elif "cumulative_queries" in arguments or "cumulative_keys" in arguments:
        return  # traced: the values are not known
    for queries, keys in pairs:
        if queries > keys:
            raise InvalidValue(
                f"causal: expected True, False, or first_query, as there are {queries} queries and "
                f"only {keys} keys, but got none of them: cross-attention needs causal=False. With "
                "causal=True the last query has the position of the last key, so that the first "
                f"{queries - keys} queries see no key"
            )
