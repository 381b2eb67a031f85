"""Arguments of one call of attention, in the forms that users have for them."""

import functools
import inspect
import json

import torch

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


def constant(function):
    """torch.compile treats the result as a constant when it traces a call."""
    if hasattr(torch, "compiler"):
        return torch.compiler.assume_constant_result(function)
    return function


def compiling():
    """Whether torch.compile or torch.export traces this call."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


@functools.lru_cache(maxsize=None)
def _options_of(method):
    """The options of a method; None for an unknown one, which the operators refuse."""
    known = json.loads(torch.ops.sextant.methods())
    return tuple(known[method]["options"]) if method in known else None


@constant
def has_option(method, option):
    return option in (_options_of(method) or ())


def refuse_unknown(function, names, method=None):
    """Raises RuntimeError that lists the arguments of a function, and the options of a method if it
    is given. The operators refuse unknown methods."""
    name = names[0]
    known = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind == inspect.Parameter.KEYWORD_ONLY]
    lists = f"Arguments: {', '.join(known)}."
    if method is not None:
        if _options_of(method) is None:
            return
        options = ", ".join(_options_of(method)) or "none"
        lists += f" Options of the method {method}: {options}."
    other = f" (see {_COUNTERPARTS[name]})" if name in _COUNTERPARTS else ""
    raise RuntimeError(f"{name}: expected no argument of this name{other}, but got one. {lists}")


def window_sides(window, causal):
    """[left, right] of a window: the keys at distances -right .. left; [] for none."""
    if window is None:
        return []
    if isinstance(window, int) and not isinstance(window, bool):
        if window < 1:
            raise RuntimeError(f"window: expected at least 1 key, but got {window}")
        return [window - 1, 0 if causal else window - 1]
    sides = list(window) if isinstance(window, (list, tuple)) else None
    if sides is None or len(sides) != 2 or not all(isinstance(side, int) for side in sides):
        raise RuntimeError(
            "window: expected a number of keys or (left, right), distances with -1 for no limit, "
            f"but got {window!r}"
        )
    return sides


def is_packed(lengths):
    return lengths.numel() > 0 if isinstance(lengths, torch.Tensor) else len(lengths) > 0


def as_list(lengths):
    """Cumulative lengths as a list."""
    if not isinstance(lengths, torch.Tensor):
        return [int(length) for length in lengths]
    if lengths.dim() != 1 or lengths.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(
            "packed_queries, packed_keys: expected int32 or int64 [sequences + 1], but got "
            f"{str(lengths.dtype).removeprefix('torch.')} {list(lengths.shape)}"
        )
    return lengths.tolist()


def packing(packed_queries, packed_keys):
    """The arguments of the operators for two lists or tensors. A traced call passes tensors on, as
    their values are not known yet."""
    arguments = {}
    for side, lengths in (("queries", packed_queries), ("keys", packed_keys)):
        if isinstance(lengths, torch.Tensor) and compiling():
            arguments[f"cumulative_{side}"] = lengths
        else:
            arguments[f"packed_{side}"] = as_list(lengths)
    return arguments


def refuse_unseen(queries, keys, arguments):
    """Raises RuntimeError if queries would see no key because nothing was said about their
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
            raise RuntimeError(
                f"causal: expected True, False, or first_query, as there are {queries} queries and "
                f"only {keys} keys, but got none of them: cross-attention needs causal=False. With "
                "causal=True the last query has the position of the last key, so that the first "
                f"{queries - keys} queries see no key"
            )
