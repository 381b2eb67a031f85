import sextant
import torch

x = torch.randn(2, 512, 512)  # [batch, length, width]
project = torch.nn.Linear(512, 3 * 512)
q, k, v = project(x).unflatten(2, (3, 8, 64)).permute(2, 0, 3, 1, 4)  # 8 heads of 64
encoding = sextant.method("t5", heads=8, head_dim=64)  # an nn.Module with trained biases
encoding(q, k, v).square().mean().backward()  # causal, and no matrix of 512 x 512
for name, parameter in encoding.named_parameters():
    print(name, list(parameter.shape), "gradient", list(parameter.grad.shape))
