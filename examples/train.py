"""Self-attention with T5's trained biases, one training step and a longer sequence."""

import sextant
import torch

heads, size, length = 8, 64, 512
project = torch.nn.Linear(heads * size, 3 * heads * size)
encoding = sextant.method("t5", heads=heads, head_dim=size, train_length=length)


def attend(x):  # [batch, length, width], causal
    q, k, v = project(x).unflatten(2, (3, heads, size)).permute(2, 0, 3, 1, 4)
    return encoding(q, k, v).transpose(1, 2).flatten(2)


attend(torch.randn(2, length, heads * size)).square().mean().backward()
for name, parameter in encoding.named_parameters():
    print(name, list(parameter.shape), "gradient", list(parameter.grad.shape))
print(list(attend(torch.randn(1, 4 * length, heads * size)).shape), "at 4 times the length")
print(len(sextant.methods()), "methods:", ", ".join(sorted(sextant.methods())[:6]), "...")
