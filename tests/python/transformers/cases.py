"""The cases of the table: each compares a small model of transformers before and after
``accelerate``. A case returns (difference, size of the results), or None where it does not apply.
"""

import contextlib
import copy

import torch
import transformers
from transformers.configuration_utils import PretrainedConfig

from tiny import (CAUSAL, ENCODER, LENGTH, MODELS, PAIR, SWEPT, VERSION, build, inputs_of,
                  padded_inputs, result, tokens)

import sextant.transformers as ours
from sextant import _attention
from sextant.transformers import masks, models, swap

CASES = {}


def case(title, *kinds):
    def add(function):
        CASES[title] = function, kinds or (CAUSAL, ENCODER, PAIR)
        return function
    return add


@contextlib.contextmanager
def counted_calls():
    """Counts Sextant's calls of attention: without any, a comparison compares nothing."""
    count, original = [], _attention.call_operator

    def counting(*given, **named):
        count.append(1)
        return original(*given, **named)
    _attention.call_operator = counting
    try:
        yield count
    finally:
        _attention.call_operator = original


class OwnFailure(Exception):
    """transformers fails at the case with its own attention."""


def both(model, run):
    """The results of `run` with transformers' attention and with Sextant's."""
    try:
        before = run(model)
    except Exception as error:
        raise OwnFailure(str(error)) from error
    ours.accelerate(model)
    with counted_calls() as count:
        after = run(model)
    assert count, "Sextant computed nothing"
    return before, after


def compared(before, after, keep=None):
    difference = (before.float() - after.float()).abs()
    if keep is not None:
        difference, before = difference[keep], before[keep]
    return difference.max().item(), before.float().abs().max().item()


# [batch, tokens]; every model has 4 heads. A mask or a bias of some axes must not be taken for one
# of others that are as long.
SHAPES = ((2, LENGTH), (8, 8), (4, 4), (1, LENGTH), (2, 1))


def worst(befores, afters, keeps=None):
    """The largest difference of some results, each by its own size."""
    keeps = keeps or [None] * len(befores)
    found = [compared(*three) for three in zip(befores, afters, keeps)]
    return max(difference / max(size, 1) for difference, size in found), 1.0


def everywhere(name, run):
    """The worst difference of run(model, ids) over the shapes; one of models with other inputs."""
    shapes = SHAPES if MODELS[name][1] != SWEPT else SHAPES[:1]
    return worst(*both(build(name), lambda m: [run(m, tokens(*shape)) for shape in shapes]))


@case("plain", CAUSAL, ENCODER, PAIR, SWEPT)
@torch.no_grad()
def plain(name):
    return everywhere(name, lambda m, ids: result(m, **inputs_of(name, ids)))


def padding(batch, length, side):
    """A mask that hides the outer fifth of the first entry, and at least one token."""
    mask = torch.ones(batch, length, dtype=torch.long)
    count = max(length // 5, 1)
    mask[0, slice(0, count) if side == "left" else slice(-count, None)] = 0
    return mask


def padded(name, side):
    masks = [padding(*shape, side) for shape in SHAPES if shape[1] > 1]

    def run(model):
        return [result(model, **inputs_of(name, tokens(*mask.shape), attention_mask=mask))
                for mask in masks]
    keeps = None if MODELS[name][1] == PAIR else [mask.bool() for mask in masks]
    return worst(*both(build(name), run), keeps)


@case("left padding")
@torch.no_grad()
def left_padding(name):
    return padded(name, "left")


@case("right padding", CAUSAL, ENCODER, PAIR, SWEPT)
@torch.no_grad()
def right_padding(name):
    if MODELS[name][1] != SWEPT:
        return padded(name, "right")
    given = padded_inputs(name)
    if given is None:
        return None
    before, after = both(build(name), lambda m: result(m, **given[0]))
    return compared(before, after, given[1](before))


@case("packed", CAUSAL)
@torch.no_grad()
def packed(name):
    """Sequences one after the other, known by their position_ids."""
    positions = torch.cat([torch.arange(20), torch.arange(28)])[None]
    run = lambda m: result(m, input_ids=tokens(1), position_ids=positions, use_cache=False)
    return compared(*both(build(name), run))


def generated(name, **more):
    """Scores of generated tokens after padding of different lengths; as many prompts as tokens, and
    without a cache a step with as many prompts as keys."""
    settings = [((2, 20), {}), ((8, 8), {})]
    if not more:
        settings.append(((8, 5), {"use_cache": False}))

    def run(model):
        found = []
        for shape, own in settings:
            out = model.generate(tokens(*shape), attention_mask=padding(*shape, "left"),
                                 max_new_tokens=12, min_new_tokens=12, do_sample=False,
                                 output_scores=True, return_dict_in_generate=True, **more, **own)
            found.append(torch.stack(out.scores).nan_to_num(neginf=0.0))
        return found
    return worst(*both(build(name), run))


@case("generate", CAUSAL, PAIR)
@torch.no_grad()
def generate(name):
    return generated(name)


@case("static cache", CAUSAL)
@torch.no_grad()
def static_cache(name):
    return generated(name, cache_implementation="static")


@case("beams", CAUSAL, PAIR)
@torch.no_grad()
def beams(name):
    def run(model):
        return [model.generate(tokens(*shape), max_new_tokens=8, do_sample=False,
                               num_beams=3).float() for shape in ((2, 20), (4, 12))]
    return worst(*both(build(name), run))


@contextlib.contextmanager
def softmax_in_double():
    """transformers' code rounds many softmaxes to float32, also those of float64."""
    original = torch.nn.functional.softmax

    def exact(x, dim=None, dtype=None, **named):
        return original(x, dim=dim, dtype=x.dtype if x.dtype == torch.float64 else dtype, **named)
    torch.nn.functional.softmax = exact
    try:
        yield
    finally:
        torch.nn.functional.softmax = original


@case("gradients", CAUSAL, ENCODER, PAIR, SWEPT)
def gradients(name):
    """In float64, so that differences are not those of rounding; also of a padded batch."""
    def run(model):
        model.zero_grad()
        parts = [(inputs_of(name, tokens()), ...)]
        if MODELS[name][1] != SWEPT:
            mask = padding(8, 8, "right")
            # Rows of padding may see no key, and then differ.
            keep = ... if MODELS[name][1] == PAIR else mask.bool()
            parts.append((inputs_of(name, tokens(8, 8), attention_mask=mask), keep))
        for inputs, keep in parts:
            in_double = {n: x.double() if x.is_floating_point() else x for n, x in inputs.items()}
            result(model, **in_double)[keep].square().mean().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    with softmax_in_double():
        before, after = both(build(name).double(), run)
    assert before.keys() == after.keys()
    most = max((compared(before[n], after[n])[0] / (before[n].abs().max().item() + 1e-3)
                for n in before), default=0.0)
    return most, 1.0


@case("bfloat16", CAUSAL, ENCODER, PAIR, SWEPT)
@torch.no_grad()
def bfloat16(name):
    """Both are compared with float32: Sextant's difference may be 1.5 times that of eager."""
    inputs = inputs_of(name, tokens())
    model = build(name)
    exact = result(model, **inputs)
    narrow = copy.deepcopy(model).bfloat16()
    inputs = {n: x.bfloat16() if x.is_floating_point() else x for n, x in inputs.items()}
    run = lambda m: result(m, **inputs)
    before, after = both(narrow, run)
    own, size = compared(exact, before)
    return max(compared(exact, after)[0] - 1.5 * own, 0.0), size


def over_static_cache(model, ids):
    """The results of a prompt, by the model as it is, and of single tokens over a static cache."""
    own = getattr(model, "_orig_mod", model)
    cache = transformers.StaticCache(config=own.config, max_cache_len=32)
    found, first = [], 0
    for size in (ids.size(1) - 3, 1, 1, 1):
        at = torch.arange(first, first + size)
        place = {"position_ids": at[None]} if hasattr(own.config, "rope_theta") or hasattr(
            own.config, "rope_parameters") else {}
        place |= {"cache": cache} if VERSION >= 5 else {"past_key_values": cache,
                                                        "cache_position": at}
        found.append(result(own if first == 0 else model, input_ids=ids[:, first:first + size],
                            **place))
        first += size
    return torch.cat(found, 1)


@case("torch.compile", CAUSAL, ENCODER, PAIR, SWEPT)
@torch.no_grad()
def compiled(name):
    """In one graph (fullgraph=True), unless the model's own code cannot be; padded too, and tokens
    over a static cache."""
    form, runs = MODELS[name][1], []
    more = {"use_cache": False} if form in (CAUSAL, PAIR) else {}
    runs.append(lambda m: result(m, **inputs_of(name, tokens(24, 24)), **more))
    if form in (CAUSAL, ENCODER):
        mask = padding(24, 24, "left")
        runs.append(lambda m: result(m, **inputs_of(name, tokens(24, 24), attention_mask=mask),
                                     **more)[mask.bool()])
    if form == CAUSAL:
        runs.append(lambda m: over_static_cache(m, tokens(2, 20)))

    def compiled_model(model, run):
        for whole in (True, False):
            torch._dynamo.reset()
            try:
                return run(torch.compile(model, backend="aot_eager", fullgraph=whole))
            except Exception as error:
                if whole and (model.config.model_type in masks.BY_VALUES or BROKEN_GRAPHS & {
                        one.by for module in model.modules()
                        for one in swap.replacements_of(module)}):
                    continue
                if compiles(build(name), run, whole):
                    raise
                if not whole:
                    raise OwnFailure(str(error)) from error
    befores, afters = [], []
    for run in runs:
        try:
            befores.append(run(build(name)))
        except Exception as error:
            if not befores:
                raise OwnFailure(str(error)) from error
            continue  # a model without a static cache, or masks
        model = ours.accelerate(build(name))
        with counted_calls() as count:
            afters.append(compiled_model(model, run))
        assert count, "Sextant computed nothing"
    return worst(befores, afters)


# Methods of layers that are a break in the graph: their calls depend on values of positions and
# segments, or on sizes of pictures.
BROKEN_GRAPHS = {"beit", "layoutlm", "sam", "xlnet"}


def compiles(model, run, whole):
    """Whether torch.compile compiles the model's own code, in one graph if whole."""
    torch._dynamo.reset()
    try:
        run(torch.compile(model, backend="aot_eager", fullgraph=whole))
    except Exception:
        return False
    return True


def state_of(model):
    """All that a model is: attributes of its modules, and fields of its configurations."""
    modules = {name: {key: value for key, value in module.__dict__.items()
                      if key not in ("_parameters", "_buffers", "_modules")}
               for name, module in model.named_modules()}
    fields = {(name, path): dict(vars(config)) for name, module in model.named_modules()
              if isinstance(module, transformers.PreTrainedModel)
              for path, config in models._configurations(module.config)}
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return copy.deepcopy((modules, {key: {name: value for name, value in own.items()
                                          if not isinstance(value, PretrainedConfig)}
                                    for key, own in fields.items()})), {
        name: x.clone() for name, x in tensors.items()}


def same(a, b):
    """Whether two states are equal; attributes that are configurations are compared as fields."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return a == b if isinstance(a, (bool, int, float, str, torch.dtype, type(None))) else \
        type(a) is type(b)


@case("restore", CAUSAL, ENCODER, PAIR, SWEPT)
@torch.no_grad()
def restored(name):
    run = lambda m: result(m, **inputs_of(name, tokens()))
    model = build(name)
    before, state = run(model), state_of(model)
    ours.accelerate(model)
    run(model)
    ours.restore(model)
    for old, new in zip(state, state_of(model)):
        assert same(old, new), "restore() leaves another state"
    return compared(before, run(model))
