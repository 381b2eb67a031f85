"""The cases of the table: each compares a small model of transformers before and after
``accelerate``. A case returns (difference, size of the results), or None where it does not apply.
"""

import contextlib
import copy

import torch

from tiny import CAUSAL, ENCODER, MODELS, PAIR, build, inputs_of, result, tokens

import sextant.transformers as ours
from sextant.transformers import deberta, interface

CASES = {}
COUNTED = ((interface, "attend_by"), (deberta, "attention"))


def case(title, *kinds):
    def add(function):
        CASES[title] = function, kinds or (CAUSAL, ENCODER, PAIR)
        return function
    return add


@contextlib.contextmanager
def counted_calls():
    """Counts Sextant's calls of attention: without any, a comparison compares nothing."""
    count = []
    originals = {module: getattr(module, name) for module, name in COUNTED}
    for module, name in COUNTED:
        def counting(*given, _call=originals[module], **named):
            count.append(1)
            return _call(*given, **named)
        setattr(module, name, counting)
    try:
        yield count
    finally:
        for module, name in COUNTED:
            setattr(module, name, originals[module])


class OwnFailure(Exception):
    """transformers fails at the case with its own attention."""


def both(model, run, compiled=lambda model: model):
    """The results of `run` with transformers' attention and, compiled, with Sextant's."""
    try:
        before = run(model)
    except Exception as error:
        raise OwnFailure(str(error)) from error
    ours.accelerate(model)
    with counted_calls() as count:
        after = run(compiled(model))
    assert count, "Sextant computed nothing"
    return before, after


def compared(before, after, keep=None):
    difference = (before.float() - after.float()).abs()
    if keep is not None:
        difference, before = difference[keep], before[keep]
    return difference.max().item(), before.float().abs().max().item()


@case("plain")
@torch.no_grad()
def plain(name):
    return compared(*both(build(name), lambda m: result(m, **inputs_of(name, tokens()))))


def padded(name, side):
    mask = torch.ones_like(tokens())
    mask[0, slice(0, 9) if side == "left" else slice(-9, None)] = 0
    keep = mask.bool()
    if MODELS[name][1] == PAIR:
        keep = torch.ones(2, mask.size(1) - 7, dtype=torch.bool)
    run = lambda m: result(m, **inputs_of(name, tokens(), attention_mask=mask))
    return compared(*both(build(name), run), keep)


@case("left padding")
@torch.no_grad()
def left_padding(name):
    return padded(name, "left")


@case("right padding")
@torch.no_grad()
def right_padding(name):
    return padded(name, "right")


@case("packed", CAUSAL)
@torch.no_grad()
def packed(name):
    """Sequences one after the other, known by their position_ids."""
    positions = torch.cat([torch.arange(20), torch.arange(28)])[None]
    run = lambda m: result(m, input_ids=tokens(1), position_ids=positions, use_cache=False)
    return compared(*both(build(name), run))


def generated(name, **more):
    """Scores of generated tokens, after padding of different lengths."""
    mask = torch.ones(2, 20, dtype=torch.long)
    mask[0, :5] = 0

    def run(model):
        out = model.generate(tokens(2, 20), attention_mask=mask, max_new_tokens=12,
                             min_new_tokens=12, do_sample=False, output_scores=True,
                             return_dict_in_generate=True, **more)
        return torch.stack(out.scores).nan_to_num(neginf=0.0)
    return compared(*both(build(name), run))


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
        return model.generate(tokens(2, 20), max_new_tokens=8, do_sample=False, num_beams=3).float()
    return compared(*both(build(name), run))


@case("gradients")
def gradients(name):
    """In float64, so that differences are not those of rounding."""
    def run(model):
        model.zero_grad()
        result(model, **inputs_of(name, tokens())).square().mean().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    before, after = both(build(name).double(), run)
    assert before.keys() == after.keys()
    most = max((compared(before[n], after[n])[0] / (before[n].abs().max().item() + 1e-3)
                for n in before), default=0.0)
    return most, 1.0


@case("bfloat16")
@torch.no_grad()
def bfloat16(name):
    """Both are compared with float32: Sextant's difference may be 1.5 times that of eager."""
    run = lambda m: result(m, **inputs_of(name, tokens()))
    model = build(name)
    exact = run(model)
    narrow = copy.deepcopy(model).bfloat16()
    before, after = both(narrow, run)
    own, size = compared(exact, before)
    return max(compared(exact, after)[0] - 1.5 * own, 0.0), size


@case("torch.compile", CAUSAL, ENCODER)
@torch.no_grad()
def compiled(name):
    torch._dynamo.reset()
    model = build(name)
    inputs = inputs_of(name, tokens())
    return compared(*both(model, lambda m: result(m, **inputs),
                          lambda m: torch.compile(m, backend="aot_eager")))


@case("restore")
@torch.no_grad()
def restored(name):
    run = lambda m: result(m, **inputs_of(name, tokens()))
    model = build(name)
    names = list(model.state_dict())
    before = run(model)
    ours.accelerate(model)
    assert list(model.state_dict()) == names
    ours.restore(model)
    return compared(before, run(model))
