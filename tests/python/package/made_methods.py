"""Small methods and inputs for tests."""

import json

import torch

import sextant

HEADS, HEAD_DIM, LENGTH = 2, 4, 6
# Options other than those of the method's file (MethodInfo::tests): small tables save time, and
# queries are on both sides of a threshold.
OPTIONS = {
    "deberta": {"buckets": 4, "max_positions": 8},
    "emd": {"options": {"buckets": 4, "max_positions": 8}},
    "fire": {"threshold": 3},
}


def options_of(name):
    """Options that fit the tests' small model."""
    sextant.load()
    return OPTIONS.get(name) or json.loads(torch.ops.sextant.method_test_options(name))


def make(name, **options):
    torch.manual_seed(1)
    method = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, layers=2, train_length=LENGTH,
                            dtype=torch.float64, **{**options_of(name), **options})
    for parameter in method.parameters():  # zeros could hide a wrong gradient
        parameter.data += 0.3 * torch.randn_like(parameter)
    return method


def token_methods():
    """All combinations of tables by token id for complex, and sinusoids that skip padding."""
    for amplitude in ("input", "word"):
        for frequency in ("component", "word", "word-and-component"):
            for phase in ("none", "component", "word", "word-and-component"):
                if amplitude == "word" or "word" in frequency or "word" in phase:
                    yield make("complex", amplitude=amplitude, frequency=frequency, phase=phase,
                               vocabulary=5)
    yield make("sinusoidal", layout="fairseq", padding_idx=1)


def traced_token_methods():
    """One of these for each path through the operator, since tracing takes seconds."""
    yield make("complex", frequency="word", phase="word-and-component", vocabulary=5)
    yield make("complex", amplitude="word", frequency="word-and-component", phase="word",
               vocabulary=5)
    yield make("sinusoidal", layout="fairseq", padding_idx=1)


TOKEN_IDS = torch.tensor([[0, 2, 1, 1, 4, 0], [3, 3, 2, 0, 1, 4]])


def inputs():
    torch.manual_seed(2)
    return [torch.randn(2, HEADS, LENGTH, HEAD_DIM, dtype=torch.float64, requires_grad=True)
            for _ in range(3)]


def random_rows(length, batch=2, heads=HEADS, seed=3):
    """q, k and v of a decoder."""
    torch.manual_seed(seed)
    return [torch.randn(batch, heads, length, HEAD_DIM) for _ in range(3)]


def in_parts(run, tensors, ends):
    """The results of run(q, k, v) over parts of the rows, which end at `ends`."""
    first, parts = 0, []
    for last in ends:
        parts.append(run(*(x[:, :, first:last] for x in tensors)))
        first = last
    return torch.cat(parts, 2)


def layer_input():
    torch.manual_seed(3)
    return torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=torch.float64, requires_grad=True)


def methods_of_decoders():
    """Each method's name, the method, its q, k and v in float32, and the result of one call."""
    q, k, v = random_rows(LENGTH)
    for name in sextant.methods():
        method = make(name).float()
        x = layer_input().float()
        tensors = method.queries(q, x), method.keys(k, x), v
        yield name, method, tensors, method(*tensors)
