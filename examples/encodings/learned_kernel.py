"""A learned kernel: a small network maps a distance to a bias for each head, and a second output to
a factor on the scores.

    b[d], w[d] = network(log(1 + |d|) / log(1 + L), sign of d)
"""

import math

import sextant
import torch


class LearnedKernel(sextant.Encoding):
    def __init__(self, hidden=32, **sizes):
        super().__init__(**sizes)
        self.unit = math.log1p(self.train_length or 512)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(2, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, 2 * self.heads))
        torch.nn.init.zeros_(self.network[2].weight)  # at the start attention without positions
        torch.nn.init.zeros_(self.network[2].bias)

    def outputs(self, distances):
        features = torch.stack((distances.abs().log1p() / self.unit, distances.sign()), 1)
        return self.network(features).T.unflatten(0, (2, self.heads))  # [2, heads, D]

    def bias(self, distances):
        return self.outputs(distances)[0]

    def weight(self, distances):
        return 1 + self.outputs(distances)[1].tanh()


if __name__ == "__main__":
    q, k, v = torch.randn(3, 2, 8, 256, 64)
    encoding = LearnedKernel(heads=8, train_length=256)
    encoding(q, k, v).square().mean().backward()
    for name, parameter in encoding.named_parameters():
        print(name, list(parameter.shape), "gradient", list(parameter.grad.shape))
