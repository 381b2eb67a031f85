"""Arguments of one call of attention, in the forms that users have for them."""

import functools
import inspect
import json
import numbers
import operator

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


# torch.compile serializes options once, when it traces a call.
options_text = constant(json.dumps)


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


def options_of_call(function, method, options, scale, window):
    """(options, scale, window) of a call of function: scale and window become options of methods
    that have options of these names, and are then None. Raises RuntimeError for an option that the
    method does not have."""
    options = dict(options)
    if scale is not None and has_option(method, "scale"):
        options["scale"], scale = scale, None
    if window is not None and has_option(method, "window"):
        options["window"], window = window, None
    unknown = [name for name in options if not has_option(method, name)]
    if unknown:
        refuse_unknown(function, unknown, method)
    return options, scale, window


def shape_of_call(q, k, layers, width, train_length):
    """The shape of a method in the operators; the width is by default that of all heads of q."""
    heads, head_dim = q.size(1), q.size(3)
    return [layers, heads, k.size(1), head_dim, heads * head_dim if width is None else width,
            train_length]


def check_tensors(owner, **tensors):
    """Raises RuntimeError unless all are tensors of four dimensions."""
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            got = list(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
            raise RuntimeError(f"{owner}{name}: expected a tensor [batch, heads, rows, columns], "
                               f"but got {got}")


def check_number(name, value, expected, fits):
    """value as a float. Raises RuntimeError unless it is a number (no bool) that fits."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not fits(value):
        raise RuntimeError(f"{name}: expected {expected}, but got {value!r}")
    return float(value)


def as_softcap(softcap):
    """The softcap of a call as the operators have it: 0 for none."""
    least, most = 1e-30, 1e30  # beyond these the steps of float32 leave its range
    return 0.0 if softcap is None else check_number(
        "softcap", softcap, f"a number from {least} to {most}, or None",
        lambda x: least <= x <= most)


def window_sides(window, causal):
    """[left, right] of a window: the keys at distances -right .. left; [] for none."""
    if window is None:
        return []
    if isinstance(window, int) and not isinstance(window, bool):
        if window < 1:
            raise RuntimeError(f"window: expected at least 1 key, but got {window}")
        return [window - 1, 0 if causal else window - 1]
    sides = list(window) if isinstance(window, (list, tuple)) else None
    if sides is None or len(sides) != 2 or not all(
        isinstance(side, int) and not isinstance(side, bool) for side in sides
    ):
        raise RuntimeError(
            "window: expected a number of keys or (left, right), distances with -1 for no limit, "
            f"but got {window!r}"
        )
    return sides


def is_packed(lengths):
    return lengths.numel() > 0 if isinstance(lengths, torch.Tensor) else len(lengths) > 0


def as_lengths(name, lengths):
    """Cumulative lengths as they are given (None, a list or tuple, an array, a tensor), as a list
    of integers, or as a list of such lists, one for each row of the batch. A tensor that
    torch.compile traces is returned as it is."""
    if lengths is None:
        return []
    if isinstance(lengths, torch.Tensor):
        if lengths.dim() not in (1, 2) or lengths.dtype not in (torch.int32, torch.int64):
            raise RuntimeError(
                f"{name}: expected int32 or int64 [sequences + 1] or [batch, sequences + 1], but "
                f"got {str(lengths.dtype).removeprefix('torch.')} {list(lengths.shape)}"
            )
        if compiling() and lengths.dim() == 2:
            raise RuntimeError(
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
        raise RuntimeError(f"{name}: expected cumulative lengths, integers or a list of integers "
                           f"for each row of the batch, but got {lengths!r}") from error


def _has_rows(value):
    """A tensor or array of one element has __index__, too."""
    return getattr(value, "ndim", 0) > 0


def by_row(packed_queries, packed_keys):
    """Whether lengths of as_lengths() are a list for each row of the batch."""
    queries, keys = (
        not isinstance(lengths, torch.Tensor) and any(isinstance(row, list) for row in lengths)
        for lengths in (packed_queries, packed_keys)
    )
    if queries != keys and is_packed(packed_queries) and is_packed(packed_keys):
        raise RuntimeError(
            "packed_keys: expected lengths for all rows of the batch or for each, as "
            "packed_queries, but got the other form"
        )
    return queries or keys


def check_cumulative(name, lengths, rows):
    """Raises RuntimeError unless cumulative lengths start at 0, never fall and end at rows."""
    falls = any(b < a for a, b in zip(lengths, lengths[1:]))
    if not lengths or lengths[0] != 0 or lengths[-1] != rows or falls:
        raise RuntimeError(f"{name}: expected cumulative lengths that start at 0, never fall and "
                           f"end at {rows}, but got {lengths}")


def packing(packed_queries, packed_keys):
    """The arguments of the operators for lengths of as_lengths(). Traced tensors are passed on, as
    their values are not known yet."""
    return {
        f"cumulative_{side}" if isinstance(lengths, torch.Tensor) else f"packed_{side}": lengths
        for side, lengths in (("queries", packed_queries), ("keys", packed_keys))
    }


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
