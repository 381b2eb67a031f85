"""Compares what a model's own masks, caches and attention functions do with the configuration."""

from __future__ import annotations

import re
from typing import Any, Iterator

import numpy as np

from .causes import Context, place_of, see, shift_of
from .facts import Facts
from .own_attention import Law
from .own_runs import ENLARGED, PADDED, Call, Own
from .reading import Group
from .report import Finding
from .rotation import rotation_between

# The fields of softcaps on attention's scores in transformers 5.24, models/*/configuration_*.py.
SOFTCAPS = ("attn_logit_softcapping",)
SAME = 1e-3  # relative, of rows
MEASURED = 1e-2  # relative, of scales, softcaps and sinks


def causal_of(model: Any, config: Any) -> bool | None:
    """Whether the model hides later keys, by transformers' lists of models and by its fields; None:
    not known."""
    from transformers.models.auto import modeling_auto as lists
    stack = re.search("(Encoder|Decoder)$", type(model).__name__)
    if stack:  # one of two
        return stack[1] == "Decoder"
    if type(model).__name__.endswith("Stack") and hasattr(model, "is_decoder"):
        return bool(model.is_decoder)
    types = {str(config.model_type), str(model.config.model_type)}
    if getattr(config, "use_bidirectional_attention", None) in (True, "all") \
            or getattr(config, "is_causal", True) is False:
        return False
    if types & set(lists.MODEL_FOR_MASKED_LM_MAPPING_NAMES) \
            and not getattr(config, "is_decoder", False):
        return False
    if types & set(lists.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) or re.search(
            "For(CausalLM|ConditionalGeneration)$", type(model).__name__):
        return True
    return None


def visible_keys(group: Group, causal: bool, queries: range, keys: range) -> np.ndarray:
    """[queries, keys] that the configuration lets see, at these positions."""
    q, k = np.asarray(queries)[:, None], np.asarray(keys)[None]
    visible = (k <= q) if causal else np.ones((len(queries), len(keys)), bool)
    if group.window:
        visible &= np.abs(q - k) < group.window
    if group.chunk:
        visible &= q // group.chunk == k // group.chunk
    return visible


def ranges(flags: np.ndarray, first: int = 0) -> str:
    """"keys 0-3, 5" of the flags of keys from `first` on."""
    at = [int(i) + first for i in np.nonzero(flags)[0]]
    if not at:
        return "no key"
    starts = [i for i in at if i - 1 not in at]
    ends = [i for i in at if i + 1 not in at]
    return "keys " + ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in zip(starts, ends))


def _cause_of_mask(expected: np.ndarray, got: np.ndarray, causal: bool, function: Any) -> str:
    """The cause of a wrong visibility [queries, keys] in a run of whole sequences."""
    more, fewer = got & ~expected, expected & ~got
    later = np.triu(np.ones_like(expected), 1)
    where = see(place_of(function))
    others = fewer & ~np.eye(len(fewer), dtype=bool)
    if bool(fewer.diagonal()[1:].all()) and not others.any() and not more[1:].any():
        return f"the mask hides the query's own key, as key < query in place of <= does{where}"
    if causal and (more & later).any():
        ahead = int(max(k - q for q, k in zip(*np.nonzero(more & later))))
        if bool(got[later].all()):
            return ("no causal mask: each query sees all later keys, as with a mask for both "
                    f"directions, or none and is_causal false{where}")
        return (f"queries see up to {ahead} later token{'s' if ahead > 1 else ''}, which training "
                f"asks them to predict{where}")
    if not causal and bool((fewer == later).all()):
        return f"a causal mask, where the model attends to both sides{where}"
    if more.any() and not fewer.any():
        return f"the window or chunk of this layer does not hide keys{where}"
    return f"the mask or the attention function hides keys that it should not{where}"


def _layers(call: Call) -> tuple[int, ...]:
    return (call.index,) if call.index is not None else ()


class OwnComparison:
    """The comparison of all layers. `findings` is the result; what was measured goes to `facts`."""

    def __init__(self, own: Own, causal: bool | None, context: Context, facts: Facts) -> None:
        self.own, self.causal, self.context, self.facts = own, causal, context, facts
        self.findings: list[Finding] = []
        for fact, why in own.missing.items():
            facts.miss(fact, None, why)
        count = len(own.bare)
        for at, call in enumerate(own.bare):
            group = context.reading.group_of(call.index, call.kind)
            if group is None:
                continue
            padded, enlarged, whole = (run[at] if len(run) == count else None
                                       for run in (own.padded, own.enlarged, own.generated_whole))
            decoded, generated = ([run[at] for run in runs] if {len(r) for r in runs} == {count}
                                  else [] for runs in (own.decoded, own.generated))
            self.compare(call, group, padded, enlarged)
            if decoded:
                self.compare_cache("cache", call, group, decoded)
            if generated and whole and not self.said(call, "cache"):
                self.compare_cache("generation", whole, group, generated)

    def find(self, call: Call, field: str, expected: str, got: str, cause: str = "") -> None:
        self.findings.append(Finding(_layers(call), field, expected, got, cause))

    def said(self, call: Call, field: str) -> bool:
        return any(f.field == field and f.layers == _layers(call) for f in self.findings)

    def failed(self, call: Call | None, when: str = "") -> bool:
        """Adds a finding if the model's attention function cannot run."""
        if call and call.fails and not self.said(call, "attention"):
            self.find(call, "attention", "an attention function that runs", call.why,
                      "the model's own attention fails in this layer" + when)
        return bool(call and call.fails)

    def compare(self, call: Call, group: Group, padded: Call | None, enlarged: Call | None
                ) -> None:
        if self.failed(call) or self.failed(padded, ", with padding"):
            padded = None
        if call.law is None and not call.fails:
            for fact in ("mask", "key heads", "softcap"):
                self.facts.miss(fact, call.index, call.why)
        elif call.law:
            self.compare_mask(call, call.law, group, padded)
            self.compare_heads(call, call.law)
            self.compare_softcap(call, call.law)
            self.compare_sinks(call, call.law)
        if enlarged:
            self.compare_norms(call, enlarged)

    # --- masks ---

    def compare_mask(self, call: Call, law: Law, group: Group, padded: Call | None) -> None:
        if self.causal is None:
            self.facts.miss("mask", call.index, "transformers' lists do not say whether models of "
                            "this type are causal")
            return
        self.facts.see("mask")
        if (group.window or group.chunk or self.own.length) < self.own.length:
            self.facts.see("window")
        span = range(self.own.length)
        expected = visible_keys(group, self.causal, span, span)
        if self.wrong_mask(call, "mask", expected, law.visible[0]) or not padded:
            return
        if padded.law is None:
            self.facts.miss("padding", call.index, padded.why)
            return
        self.facts.see("padding")
        for row, hidden, name in ((1, slice(0, PADDED), "left"),
                                  (2, slice(-PADDED, None), "right")):
            real = np.ones(self.own.length, bool)
            real[hidden] = False
            got = padded.law.visible[row][:, real]
            if got[:, :, hidden].any():
                self.find(call, "padding", f"padding on the {name} is hidden", "queries see "
                          f"{ranges(got[:, :, ~real].any((0, 1)))} of the padding",
                          "attention_mask has no effect" + see(place_of(call.function)))
                return
            # Chunks are counted from the first token behind the padding.
            moved = range(-PADDED, self.own.length - PADDED) if row == 1 else span
            if not any((got == (kept & real)[real]).all()
                       for kept in (expected, visible_keys(group, self.causal, moved, moved))):
                self.find(call, "padding", f"beside padding on the {name} the same keys as without",
                          "other keys")
                return

    def wrong_mask(self, call: Call, field: str, expected: np.ndarray, got: np.ndarray,
                   first: int = 0, cause: str = "") -> bool:
        """Adds a finding if a head [heads, queries, keys] sees other keys than expected."""
        wrong = (got != expected).any((1, 2))
        if not wrong.any():
            return False
        head = int(wrong.argmax())
        at = int((got[head] != expected).any(1).argmax())
        some = "" if wrong.all() else f"in head {head} "
        self.find(call, field, f"query {at + first} sees {ranges(expected[at])}",
                  f"{some}{ranges(got[head, at])}", cause or
                  _cause_of_mask(expected, got[head], bool(self.causal), call.function))
        return True

    # --- scores ---

    def compare_heads(self, call: Call, law: Law) -> None:
        heads = call.query.shape[1]
        expected = [h // (heads // call.key.shape[1]) for h in range(heads)]
        if law.key_heads is None:
            self.facts.miss("key heads", call.index, "too few visible keys")
        else:
            self.facts.see("key heads")
        for name, read in (("keys", law.key_heads), ("values", law.value_heads)):
            if read is not None and read != expected:
                self.find(call, "key heads", f"heads of queries read heads {expected} of {name}",
                          str(read), "heads are repeated in another order or number: repeat_kv, "
                          f"num_key_value_groups{see(place_of(call.function))}")

    def compare_softcap(self, call: Call, law: Law) -> None:
        if law.softcaps is None:
            self.facts.miss("softcap", call.index, "fewer than three visible keys")
            return
        self.facts.see("softcap")
        config = getattr(call.module, "config", None)
        expected = next((v for v in (getattr(config, n, None) for n in SOFTCAPS) if v), np.inf)
        with np.errstate(invalid="ignore"):  # nan: none, and none expected
            off = np.nan_to_num(np.abs(expected / law.softcaps - 1))
        if (off > MEASURED).any():
            got = law.softcaps[int(off.argmax())]
            self.find(call, "softcap", "none" if np.isinf(expected) else f"{expected:g}",
                      "none" if np.isinf(got) else f"{got:.4g}",
                      "this attention function does not cap scores; attn_implementation=\"eager\" "
                      "may" if np.isinf(got) else see(place_of(call.function))[2:])

    def compare_sinks(self, call: Call, law: Law) -> None:
        own = getattr(call.module, "sinks", None)
        if own is None or own.numel() != call.query.shape[1]:
            return
        self.facts.see("sinks")
        expected, got = own.detach().float().cpu().numpy().reshape(-1), law.sinks
        if (np.abs(np.exp(got - expected) - 1) > MEASURED).any():
            none = bool(np.isinf(got).all())
            self.find(call, "sinks", "the weights of the layer's parameter `sinks`",
                      "none" if none else "other weights",
                      "weights sum to one: sinks have no effect" if none
                      else see(place_of(call.function))[2:])

    # --- norms ---

    def compare_norms(self, call: Call, enlarged: Call) -> None:
        """A layer whose class has a norm of queries or keys gives the same ones for a larger
        input."""
        declared = _declared_norms(call.module)
        if declared is None:
            self.facts.miss("norms", call.index, f"{type(call.module).__name__} cannot be built by "
                            "itself, so that its norms are not known")
            return
        if declared:
            self.facts.see("norms")
        for word, kind, before, after in (("query", "queries", call.query, enlarged.query),
                                          ("key", "keys", call.key, enlarged.key)):
            size = [np.sqrt((x * x).mean((0, 1, 2))) for x in (before, after)]
            grown = size[1] / np.maximum(size[0], 1e-30)
            names = [n for n in declared if _norm_of(n) & {word, "qk"}]
            if names and not (grown < ENLARGED ** 0.5).any():
                self.find(call, "norms", f"{names[0]} of {kind}",
                          f"{kind} grow with the input {np.median(grown) / ENLARGED:.3g} fold",
                          f"{names[0]} has no effect: it is not called, or does nothing")

    # --- caches ---

    def compare_cache(self, field: str, call: Call, group: Group, steps: list[Call]) -> None:
        """field: "cache", or "generation" with generate(); call: of a run of all tokens."""
        self.facts.see(field)
        end = 0
        for step in steps:
            start, end = end, end + step.query.shape[2]
            if self.wrong_cache(field, call, group, step, start, end) \
                    or self.failed(step, ", over a cache"):
                return

    def wrong_cache(self, field: str, call: Call, group: Group, step: Call, start: int, end: int
                    ) -> bool:
        """Adds a finding if a call over a cache has other keys than the run of all tokens."""
        count = step.key.shape[2]
        least = min(end, group.window or group.chunk or end)
        if not least <= count <= end:
            self.find(call, field, f"{end} keys after {end} tokens", f"{count} keys",
                      "the cache loses or repeats keys")
            return True
        rows, old = step.query.shape[0], end - count
        for name, first, whole, cached in (
                ("queries", start, call.query[:rows, :, start:end], step.query),
                ("keys", old, call.key[:rows, :, old:end], step.key),
                ("values", old, call.value[:rows, :, old:end], step.value)):
            if whole.shape != cached.shape or _differ(whole, cached).any():
                self.find(call, field, f"the {name} of a run without a cache, at positions "
                          f"{first}-{end - 1}", *_described(name, whole, cached, first, group))
                return True
        if step.law is None or self.causal is None or self.said(call, "mask"):
            return False
        expected = visible_keys(group, self.causal, range(start, end), range(old, end))
        return self.wrong_mask(call, field, expected, step.law.visible[0], start,
                               "the mask over a cache does not fit its length" if start else "")


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which positions of [batch, heads, positions, channels] differ."""
    size = np.sqrt((a * a).sum((0, 1, 3)))
    return np.sqrt(((a - b) ** 2).sum((0, 1, 3))) > SAME * np.maximum(size, 1e-12)


def _described(name: str, whole: np.ndarray, cached: np.ndarray, first: int, group: Group
               ) -> tuple[str, str]:
    """How values over a cache differ from those of the whole run, and the cause."""
    if whole.shape != cached.shape:
        return f"{name} of another shape, {cached.shape}", ""
    at = np.nonzero(_differ(whole, cached))[0]
    moved = None
    if group.rotated_channels and name != "values":
        start, last = group.rotated_channels
        a, b = (x[:, :, at].astype(float).reshape(-1, len(at), x.shape[-1])
                for x in (whole, cached))
        found = rotation_between(a, b, (start, last - start + 1), 1e-6)
        if found.phases.shape[1] == len(group.frequencies):
            moved = shift_of(found.phases[0], np.asarray(group.frequencies), 2e-3)
    if moved:
        return (f"the token at {first + at[0]} is at {first + at[0] + moved}",
                "after a cache, positions " + ("repeat" if moved < 0 else "are skipped") +
                ": its length is counted wrongly")
    for i in at:
        same = [j for j in range(whole.shape[2])
                if not _differ(whole[:, :, j:j + 1], cached[:, :, i:i + 1]).any()]
        if same:
            return (f"at {first + i} stand those of {first + same[0]}",
                    "the cache keeps tokens in another order or overwrites them")
    return (f"other {name} at {', '.join(str(first + i) for i in at)}",
            "the cache changes what it holds, or new tokens are computed differently over it")


def _norm_of(name: str) -> set[str]:
    """{"query"}, {"key"} or {"qk"} of the name of a norm of these."""
    words = {"q": "query", "k": "key", "kv": "key", "query": "query", "key": "key", "qk": "qk"}
    parts = name.split("_")
    return {words[p] for p in parts if p in words} if any("norm" in p for p in parts) else set()


def _declared_norms(module: Any) -> list[str] | None:
    """The norms of queries and keys that a layer has as its class builds it; None: not known."""
    import torch

    def named(one: Any) -> Iterator[str]:
        return (name for name, child in one.named_children()
                if _norm_of(name) and not isinstance(child, torch.nn.Identity))
    own = list(named(module))
    try:
        with torch.device("meta"):
            built = type(module)(module.config, getattr(module, "layer_idx", 0) or 0)
    except Exception:  # pylint: disable=broad-except
        return own or None
    return list(dict.fromkeys([*own, *named(built)]))
