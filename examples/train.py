import sextant
import torch

project = torch.nn.Linear(512, 3 * 512)
encoding = sextant.method("t5", heads=8, head_dim=64)  # an nn.Module with trained biases


def attend(x):  # [batch, length, 512], causal
    q, k, v = project(x).unflatten(2, (3, 8, 64)).permute(2, 0, 3, 1, 4)
    return encoding(q, k, v).transpose(1, 2).flatten(2)


attend(torch.randn(2, 512, 512)).square().mean().backward()  # no matrix of 512 x 512
print([(name, list(p.grad.shape)) for name, p in encoding.named_parameters()])
print(list(attend(torch.randn(1, 4096, 512)).shape), len(sextant.methods()), "methods")
