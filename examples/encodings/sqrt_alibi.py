"""ALiBi by the square root of the distance: b[d] = -m_h sqrt(|d|), with trained slopes m_h."""

import sextant
import torch


class SqrtAlibi(sextant.Encoding):
    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.slopes = torch.nn.Parameter(sextant.tables.alibi_slopes(self.heads).float())

    def bias(self, distances):
        return -self.slopes[:, None] * distances.abs().sqrt()


if __name__ == "__main__":
    q, k, v = torch.randn(3, 2, 8, 512, 64)  # [batch, heads, length, head_dim] each
    encoding = SqrtAlibi(heads=8)
    encoding(q, k, v).square().mean().backward()  # causal, and no matrix of 512 x 512
    print("slopes", list(encoding.slopes.shape), "gradient", list(encoding.slopes.grad.shape))
