"""A contextual gate: each key decides how much of the past the queries after it forget.

    c_j = -sum_{m <= j} log sigmoid(u_h . k_m + a_h)

The score of a pair gets c_j - c_i, the sum of log sigmoid(u_h . k_m + a_h) over the keys m after j
and up to i: softmax ignores c_i, and one number for each key is enough.
"""

import sextant
import torch


class ContextualGate(sextant.Encoding):
    def __init__(self, open_at_first=4.0, **sizes):
        super().__init__(**sizes)
        self.groups = self.heads // self.key_heads
        self.direction = torch.nn.Parameter(torch.zeros(self.heads, self.head_dim))
        self.threshold = torch.nn.Parameter(torch.full((self.heads,), open_at_first))

    def key_bias(self, k, positions):
        k = k.repeat_interleave(self.groups, 1).to(self.direction.dtype)
        logits = (k * self.direction[:, None]).sum(3) + self.threshold[:, None]
        kept = torch.nn.functional.logsigmoid(logits)  # [batch, heads, keys], at most 0
        return -kept.double().cumsum(2)


if __name__ == "__main__":
    q, k, v = torch.randn(3, 2, 8, 256, 64)
    encoding = ContextualGate(heads=8, head_dim=64)
    encoding(q, k, v).square().mean().backward()
    for name, parameter in encoding.named_parameters():
        print(name, list(parameter.shape), "gradient", list(parameter.grad.shape))
