"""The visibility of keys: from a mask function of transformers to arguments of attention.

A mask interface of transformers is given a function of batch entry, head, query and key. It is
evaluated, some queries at a time, by transformers' own ``sdpa_mask``, so nothing depends on how the
function was composed. Where each query sees consecutive keys (causal, windows, chunks, packed
sequences, padding at either end), the result is their ranges, which need no memory of queries x
keys; else it is the mask itself.
"""

import inspect
from dataclasses import dataclass, field

import torch
from transformers import masking_utils

from sextant._call import compiling
from sextant.transformers.errors import ModelError

QUERIES_AT_ONCE = 256
# transformers before 5 tells the queries by cache_position.
BY_CACHE_POSITION = "cache_position" in inspect.signature(masking_utils.sdpa_mask).parameters


# The shapes of masks that say by their shape alone what queries see: all keys, or, where query n
# has the row of key n, those up to their own. A traced graph knows shapes, and no values.
ALL_KEYS, UP_TO_OWN = (1, 1, 0, 1), (1, 1, 0, 2)
STRETCHED: set[int] = set()  # ids of configurations whose layers need the positions of rows
BY_VALUES: set[str] = set()  # types of models whose layers read no such masks


class Ranges(torch.Tensor):
    """Ranges where transformers expects a mask: int64 [1 or batch, 1, queries, 4]. The columns are
    the keys [first, last) that a query sees, the key row at the query's own position, and the
    position of key row 0, which padding before a sequence and dropped rows of a cache move. A layer
    may hand them on, or crop them to its keys; anything that would compute with them as with a mask
    is a ModelError."""

    # Functions that copy, move or describe it; those with one underscore are torch's own.
    PASSED_ON = frozenset((
        "__deepcopy__", "__get__", "__hash__", "__reduce_ex__", "__repr__", "__set__",
        "as_subclass", "clone", "contiguous", "data_ptr", "detach", "dim", "element_size", "expand",
        "get_device", "is_complex", "is_conj", "is_contiguous", "is_floating_point", "is_inference",
        "is_neg", "is_set_to", "ndimension", "nelement", "numel", "requires_grad_", "size",
        "storage_offset", "stride", "to", "type", "untyped_storage", "view_as"))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = func.__name__
        if name == "to" and torch.bool in args[1:] or name == "__getitem__" and _crops(args[1]):
            return args[0]  # a mask would be bool already; ``view_of`` checks that keys are enough
        if name not in cls.PASSED_ON and (name.startswith("__") or not name.startswith("_")):
            raise ModelError("attention_mask: expected a layer that hands its mask on to the "
                             f"attention interface, but it computes with it ({name})")
        return super().__torch_function__(func, types, args, kwargs or {})


def _crops(index):
    """Whether an index takes the first keys of a mask."""
    return (isinstance(index, tuple) and len(index) == 4 and index[:3] == (slice(None),) * 3 and
            isinstance(index[3], slice) and not index[3].start and index[3].step is None)


@dataclass
class View:
    """Arguments of ``sextant.attention`` for one mask. Rows [first, last) of keys are read; origins
    are the positions of row 0 for each entry of the batch, or one for all."""

    keys: tuple[int, int]
    arguments: dict = field(default_factory=dict)
    origins: list = field(default_factory=lambda: [0])


def visibility(batch_size, q_length=None, kv_length=0, q_offset=0, kv_offset=0, cache_position=None,
               mask_function=masking_utils.causal_mask_function, attention_mask=None, **named):
    """The mask interface: ranges, or a bool mask [batch, 1, queries, keys]; where torch.compile
    traces it, a bool mask or one for ``traced_place``."""
    named = {**named, "mask_function": mask_function, "attention_mask": attention_mask}
    config = named.get("config")
    if not compiling() or hasattr(config, "sextant") or id(config) in STRETCHED or (
            getattr(config, "model_type", None) in BY_VALUES):
        return _of_values(batch_size, q_length, kv_length, q_offset, kv_offset, cache_position,
                          **named)
    # A traced mask has no values that could decide.
    queries = q_length if cache_position is None else cache_position.numel()
    at_zero = isinstance(kv_offset, int) and kv_offset == 0 and queries == kv_length
    if mask_function is getattr(masking_utils, "bidirectional_mask_function", None):
        if attention_mask is None:
            return torch.zeros(ALL_KEYS, dtype=torch.int64, device=named.get("device"))
        if attention_mask.shape[1:] == (kv_length,) and kv_offset == 0:
            return attention_mask.bool()[:, None, None]
    elif attention_mask is None and mask_function is masking_utils.causal_mask_function and at_zero:
        return torch.zeros(UP_TO_OWN, dtype=torch.int64, device=named.get("device"))
    place = {"cache_position": cache_position} if BY_CACHE_POSITION else {
        "q_length": q_length, "q_offset": q_offset}
    for name in ("allow_is_causal_skip", "allow_is_bidirectional_skip"):
        named[name] = False
    return masking_utils.sdpa_mask(batch_size=batch_size, kv_length=kv_length, kv_offset=kv_offset,
                                   **place, **named)


@torch.compiler.disable  # its values decide how keys are read
def _of_values(batch_size, q_length, kv_length, q_offset, kv_offset, cache_position, **named):
    if cache_position is not None:
        q_length, q_offset = cache_position.numel(), int(cache_position[0])
    q_offset, kv_offset = int(q_offset), int(kv_offset)
    for name in ("allow_is_causal_skip", "allow_is_bidirectional_skip"):
        named[name] = False
    parts = []
    for first in range(0, q_length, QUERIES_AT_ONCE):
        count = min(QUERIES_AT_ONCE, q_length - first)
        place = ({"cache_position": cache_position[first:first + count]} if BY_CACHE_POSITION else
                 {"q_length": count, "q_offset": q_offset + first})
        parts.append(masking_utils.sdpa_mask(batch_size=batch_size, kv_length=kv_length,
                                             kv_offset=kv_offset, **place, **named))
    if not parts:
        return None
    parts = [mask[:1] if mask.stride(0) == 0 else mask for mask in parts]
    ranges = [_ranges(mask) for mask in parts]
    if any(part is None for part in ranges):
        one = parts[0][:, :, :1]
        if all(bool((mask == one).all()) for mask in parts):  # all queries see the same keys
            return one.expand(batch_size, -1, -1, -1)
        mask = torch.cat([mask.expand(batch_size, 1, -1, -1) for mask in parts], 2)
        mask._sextant_first_query = q_offset - kv_offset
        return mask
    batch = max(part.size(0) for part in ranges)
    found = torch.cat([part.expand(batch, 1, -1, -1) for part in ranges], 2)
    if batch > 1 and bool((found == found[:1]).all()):
        found = found[:1]
    own = torch.arange(q_length, device=found.device) + (q_offset - kv_offset)
    origins = _origins(named.get("attention_mask"), kv_offset)
    if len(set(origins)) > 1:
        found = found.expand(batch_size, -1, -1, -1)
    origin = torch.tensor(origins, device=found.device)[: found.size(0)]
    found = torch.cat([found, *(x.expand(found.size(0), 1, q_length, 1) for x in
                                (own.view(1, 1, -1, 1), origin.view(-1, 1, 1, 1)))], 3)
    return found.as_subclass(Ranges)


def _origins(attention_mask, kv_offset):
    """The position of key row 0, for each entry of the batch if there is a mask of padding."""
    if attention_mask is None or attention_mask.dim() != 2:
        return [kv_offset]
    shown = attention_mask.bool()
    padding = torch.where(shown.any(1), shown.int().argmax(1), 0)
    return [kv_offset - n for n in padding.tolist()]


def _ranges(mask):
    """[batch, 1, queries, 2] of a bool mask; None if some query sees keys with a gap."""
    count = mask.sum(3)
    keys = mask.size(3)
    first = mask.int().argmax(3)
    last = keys - mask.flip(3).int().argmax(3)
    empty = count == 0
    first, last = first.masked_fill(empty, 0), last.masked_fill(empty, 0)
    if not bool((last - first == count).all()):
        return None
    return torch.stack([first, last], 3)


def of_model(mask, queries, keys, first_query=None):
    """A mask that a model's own code made, [batch, 1, 1 or queries, keys], bool or added to scores,
    as ranges if each query sees consecutive keys; else as it is. Queries that see no key, as those
    of padding do, then see what others see."""
    if is_ranges(mask) or mask.size(2) == 1:
        return mask
    first_query = keys - queries if first_query is None else first_query
    return kept(mask, ("ranges", queries, keys, first_query), _of_model, queries, keys, first_query)


def _of_model(mask, queries, keys, first_query):
    result = mask.detach()
    if mask.dtype != torch.bool:
        lowest = torch.finfo(mask.dtype).min / 2
        if not bool(((mask == 0) | (mask <= lowest)).all()):
            raise ModelError("attention_mask: expected True and False, or 0 and the lowest number "
                             "of its type, but got other values")
        result = mask == 0
    parts = [_ranges(part) for part in result[:, :1].split(QUERIES_AT_ONCE, 2)] if torch.equal(
        result[:, :1].expand_as(result), result) else [None]
    if all(part is not None for part in parts):
        first, last = torch.cat(parts, 2).unbind(3)
        empty = first >= last
        first = torch.where(empty, first.masked_fill(empty, keys).amin(2, True), first)
        last = torch.where(empty, last.amax(2, True), last)
        none = first >= last
        own = (torch.arange(queries, device=mask.device) + first_query).expand_as(first)
        result = torch.stack([first.masked_fill(none, 0), last.masked_fill(none, 0), own,
                              torch.zeros_like(own)], 3).as_subclass(Ranges)
    else:
        result._sextant_first_query = first_query
    return result


def kept(mask, name, make, *arguments):
    """make(mask, *arguments), which is kept with the tensor, as all layers share it, by a name,
    until the tensor's values change. Tensors of inference mode do not tell whether they do."""
    if compiling() or mask.is_inference():
        return make(mask, *arguments)
    found = getattr(mask, "_sextant_kept", None)
    if found is None or found[0] != mask._version:
        found = mask._sextant_kept = mask._version, {}
    if name not in found[1]:
        found[1][name] = make(mask, *arguments)
    return found[1][name]


def traced_place(mask, first_query):
    """The arguments of a call for a mask in a graph that torch.compile traces."""
    if not is_stated(mask):
        return {"causal": False, "first_query": first_query, "mask": mask}
    causal = mask.shape[2:] == UP_TO_OWN[2:]
    return {"causal": causal, "first_query": 0 if causal else first_query}


def is_stated(mask):
    """Whether the shape of a mask says what queries see."""
    return mask is not None and tuple(mask.shape) in (ALL_KEYS, UP_TO_OWN)


def is_ranges(mask):
    return isinstance(mask, Ranges)


def first_query_of(mask, queries, keys):
    """The key row of the first query of a mask that is no ranges: in a static cache it is not among
    the last rows. A mask without a note of it, as torch.compile makes them, shows the last query
    its own key at last, if there are other keys than those of the queries."""
    noted = getattr(mask, "_sextant_first_query", None)
    if noted is not None or queries == keys:
        return noted or 0
    shown = mask[:, :, -1] if mask.dtype == torch.bool else mask[:, :, -1] == 0
    last = torch.arange(keys, device=mask.device)[shown.flatten(0, -2).any(0)]
    return (int(last[-1]) if last.numel() else keys - 1) - (queries - 1)


def view_of(ranges, keys):
    """The View of ranges over a key tensor of ``keys`` rows. It is kept with the tensor, which all
    layers share."""
    kept = getattr(ranges, "_sextant_view", None)
    if kept is not None and kept[0] == keys:
        return kept[1]
    with torch._C.DisableTorchFunctionSubclass():
        plain = ranges.as_subclass(torch.Tensor)
    view = _view(plain[:, 0, :, :3].cpu(), keys)
    view.origins = plain[:, 0, 0, 3].tolist()
    if "mask" in view.arguments:
        view.arguments["mask"] = view.arguments["mask"].to(plain.device)
    ranges._sextant_view = keys, view
    return view


def own_rows(ranges):
    """The key row of the first query, and which queries see their own key, as those of padding do
    not: bool [1 or batch, queries], on the CPU."""
    with torch._C.DisableTorchFunctionSubclass():
        plain = ranges.as_subclass(torch.Tensor)[:, 0].cpu()
    first, last, own, _ = plain.unbind(2)
    return int(own[0, 0]), (first <= own) & (own < last)


def entry(ranges, b):
    """The ranges of one entry of the batch."""
    with torch._C.DisableTorchFunctionSubclass():
        return ranges.as_subclass(torch.Tensor)[b:b + 1].as_subclass(Ranges)


def narrowed(ranges, lengths, keys):
    """The ranges within sequences that are packed in one row of the batch, by their cumulative
    lengths. They are kept with the tensor, which all layers share."""
    kept = getattr(ranges, "_sextant_narrowed", None)
    if kept is not None and kept[0] == (lengths, keys):
        return kept[1]
    with torch._C.DisableTorchFunctionSubclass():
        plain = ranges.as_subclass(torch.Tensor)
        queries = plain.size(2)
        sums = torch.tensor(lengths)
        falls = bool((sums.diff() < 0).any())
        if plain.size(0) != 1 or queries != keys or lengths[0] != 0 or lengths[-1] != keys or falls:
            raise ModelError(
                "cu_seq_lens_q, cu_seq_lens_k: expected cumulative lengths from 0 to the rows of a "
                f"batch of 1, without cache, but got {list(lengths)} for a mask of "
                f"{plain.size(0)} x {queries} queries and {keys} keys")
        sequence = torch.bucketize(torch.arange(queries), sums[1:], right=True)
        first = torch.maximum(plain[..., 0].cpu(), sums[sequence])
        last = torch.minimum(plain[..., 1].cpu(), sums[sequence + 1])
        empty = first >= last
        plain = torch.cat([torch.stack([first.masked_fill(empty, 0), last.masked_fill(empty, 0)], 3
                                       ).to(plain.device), plain[..., 2:]], 3)
        result = plain.as_subclass(Ranges)
    ranges._sextant_narrowed = (lengths, keys), result
    return result


def _view(ranges, keys):
    first, last, own = ranges.unbind(2)
    seen = last > first
    if int(last.max()) > keys:
        raise ModelError(f"attention_mask: expected one for {keys} keys, but got one for at least "
                         f"{int(last.max())}")
    if not bool(seen.any()):
        return View((0, 0))
    low, high = int(first[seen].min()), int(last.max())
    for classify in (_same_keys, _causal, _packed, _window):
        arguments = classify(first, last, own, seen, low, high)
        if arguments is not None:
            return View((low, high), arguments)
    at = torch.arange(low, high)
    mask = (at >= first[..., None]) & (at < last[..., None])
    return View((low, high), {"causal": False, "first_query": _relative(own, low),
                              "mask": mask[:, None]})


def _relative(own, low):
    return int(own[0, 0]) - low


def _by_key(shown):
    """[batch, keys] with all four axes: a mask of two may mean [queries, keys] as well."""
    return shown[:, None, None]


def _same_keys(first, last, own, seen, low, high):
    """All queries of a batch entry see the same keys."""
    if not bool((first == first[:, :1]).all() and (last == last[:, :1]).all()):
        return None
    arguments = {"causal": False, "first_query": _relative(own, low)}
    if bool(((first != low) | (last != high)).any()):
        at = torch.arange(low, high)
        arguments["mask"] = _by_key((at >= first[:, :1]) & (at < last[:, :1]))
    return arguments


def _causal(first, last, own, seen, low, high):
    """Keys up to the query's own, within a window, without the padding of each batch entry."""
    if bool((last > own + 1).any()):
        return None
    window = int((last - first).max())
    at = torch.arange(low, high)
    shown = torch.zeros(first.size(0), high - low, dtype=torch.bool)
    for b in range(first.size(0)):
        rows = seen[b]
        if bool(rows.any()):
            shown[b] = (at >= first[b, rows].min()) & (at < last[b, rows].max())
    starts = torch.where(shown.any(1), shown.int().argmax(1) + low, high)[:, None]
    ends = torch.where(shown.any(1), high - shown.flip(1).int().argmax(1), low)[:, None]
    for limit in (None, window):
        begin = starts.expand_as(first) if limit is None else torch.maximum(
            starts, own + 1 - limit)
        end = torch.minimum(own + 1, ends)
        empty = begin >= end
        if bool((torch.where(empty, 0, begin) == first).all() and
                (torch.where(empty, 0, end) == last).all()):
            arguments = {"causal": True, "first_query": _relative(own, low)}
            if limit is not None:
                arguments["window"] = limit
            if not bool(shown.all()):
                arguments["mask"] = _by_key(shown)
            return arguments
    return None


def _packed(first, last, own, seen, low, high):
    """Sequences one after the other, with a query for each key, whose queries see all keys of their
    sequence, or those up to their own, within a window."""
    queries = own.size(1)
    if low != 0 or high != queries or bool((own[:, 0] != 0).any()):
        return None
    causal = bool((last == own + 1).all())
    window = int((last - first).max())
    rows = torch.arange(queries).expand_as(first)
    for limit in (None, window) if causal else (None,):
        begins = first == rows
        starts = torch.where(begins, rows, 0).cummax(1).values
        expected = starts if limit is None else torch.maximum(starts, rows + 1 - limit)
        if not bool((expected == first).all()):
            continue
        packed = [[*(n for n in range(queries) if begins[b, n]), queries]
                  for b in range(first.size(0))]
        if not causal and not all(
                bool((last[b, start:end] == end).all())
                for b, sums in enumerate(packed) for start, end in zip(sums, sums[1:])):
            continue
        packed = packed[0] if len(packed) == 1 else packed
        arguments = {"causal": causal, "packed_queries": packed, "packed_keys": packed}
        if limit is not None:
            arguments["window"] = limit
        return arguments
    return None


def _window(first, last, own, seen, low, high):
    """Keys within two distances before and after the query's own, without those that no query of
    the batch entry sees."""
    left, right = ((x * seen).max().item() for x in (own - first, last - 1 - own))
    starts = torch.where(seen, first, high).amin(1, True)
    ends = torch.where(seen, last, low).amax(1, True)
    begin, end = torch.maximum(starts, own - left), torch.minimum(ends, own + right + 1)
    if bool((seen & ((begin != first) | (end != last)) | (~seen & (begin < end))).any()):
        return None
    arguments = {"causal": False, "first_query": _relative(own, low), "window": (left, right)}
    at = torch.arange(low, high)
    shown = (at >= starts) & (at < ends)
    if not bool(shown.all()):
        arguments["mask"] = _by_key(shown)
    return arguments
