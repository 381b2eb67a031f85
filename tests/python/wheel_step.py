"""One training step with the installed package; tests/check_wheel.sh runs it beside each torch.

The loss of the next step is lower, every parameter has changed, and the gradients agree with
finite differences.
"""

import sextant
import torch

torch.manual_seed(0)
x, wanted = torch.randn(2, 64, 32), torch.randn(2, 64, 32)
project = torch.nn.Linear(32, 96)
encoding = sextant.method("t5", heads=4, head_dim=8)
parameters = [*project.parameters(), *encoding.parameters()]
before = [parameter.detach().clone() for parameter in parameters]
optimizer = torch.optim.SGD(parameters, lr=0.1)


def loss():
    q, k, v = project(x).unflatten(2, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    return (encoding(q, k, v).transpose(1, 2).flatten(2) - wanted).square().mean()


first = loss()
first.backward()
optimizer.step()
second = loss()
assert second < first, (first, second)
for parameter, old in zip(parameters, before):
    assert not torch.equal(parameter, old), "a parameter had no gradient"

q = torch.randn(1, 2, 6, 4, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda q: sextant.attention(q, q, q, method="alibi"), (q,))
print(f"one training step: loss {first.item():.4f}, then {second.item():.4f}")
