"""Runs a model with its own masks, caches and attention function, and measures its layers.

In each run the outputs of attention are zero, so that what reaches a layer depends on its own token
only, and a fault of one layer is no fault of the next. The runs are

* ``bare``: tokens and nothing else, so that the model counts positions and makes masks itself;
* ``padded``: one row as before, one with padding on the left, one on the right;
* ``decoded``: the tokens of the first row in steps, over the model's cache;
* ``generated``: the steps of generate(), and ``generated_whole`` the same tokens in one call;
* ``enlarged``: the inputs of attention layers four times as large, which a norm of queries or keys
  undoes.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .own_attention import Law, function_of, law_of
from .probe import ProbeError, array_of, index_of, kind_of, running, tokens_for

ROWS, LENGTH, PADDED = 3, 12, 2
LONGEST = 48  # tokens of a run that shows a window by itself
STEPS = (1, 1, 1, 3)  # tokens of each call over a cache, after a first call of the rest
GENERATED = 4
ENLARGED = 4.0


@dataclass(frozen=True)
class Call:
    """A layer's call of its attention function. law: None if the function cannot be called here,
    for the reason `why`; fails: a reason that is the model's. sinks: the layer's parameter."""

    name: str
    index: int | None
    kind: str | None
    module: Any
    function: Any
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    law: Law | None
    why: str = ""
    fails: bool = False


@dataclass
class Own:
    """The calls of each run, in their order. missing: {fact: why it was not measured}."""

    length: int
    bare: list[Call] = field(default_factory=list)
    padded: list[Call] = field(default_factory=list)
    decoded: list[list[Call]] = field(default_factory=list)
    generated: list[list[Call]] = field(default_factory=list)
    generated_whole: list[Call] = field(default_factory=list)
    enlarged: list[Call] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


class OwnWatch:
    """The attention function and the mask function of such runs, which hand on to the model's."""

    def __init__(self, model: Any, laws: bool = True) -> None:
        self.names = {module: name for name, module in model.named_modules()}
        self.config, self.laws = model.config, laws
        self.implementations: dict[int, str] = {}
        self.calls: list[Call] = []

    def implementation(self, config: Any) -> str:
        own = self.implementations.get(id(self.config), "eager")
        return self.implementations.get(id(config), own) or "eager"

    def masks(self, *arguments: Any, **named: Any) -> Any:
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        name = self.implementation(named.get("config"))
        if name not in ALL_MASK_ATTENTION_FUNCTIONS:
            return named.get("attention_mask")  # as transformers does then
        return ALL_MASK_ATTENTION_FUNCTIONS[name](*arguments, **named)

    def attention(self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None,
                  scaling: Any = None, dropout: float = 0.0, **named: Any) -> tuple[Any, None]:
        del dropout
        implementation = self.implementation(getattr(module, "config", None))
        function: Any = function_of(module, implementation)
        law, why, fails = None, "", False

        def attend(q: Any, k: Any, v: Any) -> Any:
            return function(module, q, k, v, attention_mask, scaling=scaling, dropout=0.0,
                            **named)[0]
        if function is None:
            why = f"the function of the implementation {implementation} is not found"
        elif self.laws:
            try:
                law = law_of(attend, query, key, value,
                             scaling if isinstance(scaling, (int, float)) else None)
            except Exception as error:  # pylint: disable=broad-except
                why = f"{implementation}: {type(error).__name__}: {str(error)[:200]}"
                fails = implementation in ("eager", "sdpa")
        name = self.names.get(module, "")
        index = index_of(module, name)
        self.calls.append(Call(name, index, kind_of(module, index), module, function,
                               array_of(query), array_of(key), array_of(value), law, why, fails))
        return value.new_zeros(query.shape[0], query.shape[2], query.shape[1],
                               value.shape[-1]), None


def _named(model: Any) -> dict[str, Any]:
    return dict(inspect.signature(model.forward).parameters)


def _cache_name(model: Any) -> str:
    """The argument of the cache: that of transformers 5, or of 4."""
    return next((n for n in ("cache", "past_key_values") if n in _named(model)), "")


def _run(model: Any, given: dict[str, Any], laws: bool = True) -> tuple[list[Call], Any]:
    watch = OwnWatch(model, laws)
    with running(model, watch):
        result = model(**given)
    return watch.calls, result


def _decoded(model: Any, tokens: Any) -> list[list[Call]]:
    name, cache, done, steps = _cache_name(model), None, 0, []
    for count in (tokens.shape[1] - sum(STEPS), *STEPS):
        given = {"input_ids": tokens[:, done:done + count], "use_cache": True}
        calls, result = _run(model, {**given, name: cache} if done else given)
        cache = next((result[n] for n in (name, "cache", "past_key_values")
                      if n in result and result[n] is not None), None)
        steps.append(calls)
        done += count
        if cache is None:
            return []
    return steps


def _generated(model: Any, tokens: Any, layers: int) -> tuple[Any, list[list[Call]]]:
    """The tokens that are fed, and the calls of each step."""
    import torch
    from transformers import GenerationConfig
    watch = OwnWatch(model, laws=False)
    how = GenerationConfig(max_new_tokens=GENERATED, min_new_tokens=GENERATED, do_sample=False,
                           use_cache=True, cache_implementation="dynamic", pad_token_id=0)
    with running(model, watch):
        done = model.generate(tokens, attention_mask=torch.ones_like(tokens),
                              generation_config=how)
    return done[:, :-1], [watch.calls[at:at + layers]
                          for at in range(0, len(watch.calls), layers)]


def _enlarge(_: Any, arguments: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Enlarges the first argument of an attention layer, its input."""
    if arguments:
        return (arguments[0] * ENLARGED, *arguments[1:]), named
    return arguments, {**named, "hidden_states": named["hidden_states"] * ENLARGED}


def own_runs(model: Any, windows: list[int], caches: bool) -> Own:
    """All runs. windows: the lengths of windows and chunks of the configuration. caches: whether
    the model may have a cache. Raises ProbeError if the model cannot run on tokens alone."""
    import torch
    length = max([LENGTH, *(w + 4 for w in windows if w + 4 <= LONGEST)])
    own, names = Own(length), _named(model)
    tokens = tokens_for(model, ROWS, length).to(next(model.parameters()).device)
    plain = {"use_cache": False} if "use_cache" in names else {}
    try:
        own.bare, _ = _run(model, {"input_ids": tokens, **plain})
    except Exception as error:
        raise ProbeError(f"the model's forward with tokens alone: {type(error).__name__}: {error}"
                         ) from error

    def attempt(fact: str, run: Any) -> Any:
        try:
            return run()
        except Exception as error:  # pylint: disable=broad-except
            own.missing[fact] = f"{type(error).__name__}: {str(error)[:200]}"
            return []

    def padded() -> list[Call]:
        mask = torch.ones_like(tokens)
        mask[1, :PADDED] = 0
        mask[2, -PADDED:] = 0
        return _run(model, {"input_ids": tokens, "attention_mask": mask, **plain})[0]

    def enlarged() -> list[Call]:
        handles = [call.module.register_forward_pre_hook(_enlarge, with_kwargs=True)
                   for call in {id(c.module): c for c in own.bare}.values()]
        try:
            return _run(model, {"input_ids": tokens, **plain}, laws=False)[0]
        finally:
            for handle in handles:
                handle.remove()
    if "attention_mask" in names:
        own.padded = attempt("padding", padded)
    own.enlarged = attempt("norms", enlarged)
    if caches and "use_cache" in names and _cache_name(model):
        own.decoded = attempt("cache", lambda: _decoded(model, tokens))
    if own.decoded and getattr(model, "generation_config", None) is not None:
        done, own.generated = attempt("generation", lambda: _generated(
            model, tokens[:1, :-GENERATED], len(own.bare))) or (tokens[:1], [])
        own.generated_whole = attempt("generation", lambda: _run(
            model, {"input_ids": done, **plain}, laws=False)[0])
    return own
