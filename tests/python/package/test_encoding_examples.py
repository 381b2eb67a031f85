"""The examples of encodings of one's own (examples/encodings): they run, and each agrees with
explicit matrices, forward and backward."""

import importlib.util
import re
import subprocess
import sys
import unittest
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "encodings"
SIZES = {"heads": 4, "key_heads": 2, "head_dim": 6, "train_length": 8}
LENGTH = 7


def made(file, name):
    spec = importlib.util.spec_from_file_location(file, FOLDER / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(1)
    encoding = getattr(module, name)(**SIZES).double()
    for parameter in encoding.parameters():  # zeros could hide a wrong gradient
        parameter.data += 0.3 * torch.randn_like(parameter)
    return encoding


def distances():
    return (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)).double()


def softmax_attention(q, k, v, change):
    k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = change(q @ k.transpose(2, 3) * 6**-0.5)
    return scores.masked_fill(distances() < 0, -torch.inf).softmax(3) @ v


def sqrt_alibi(e, q, k, v):
    return softmax_attention(
        q, k, v, lambda s: s - e.slopes[:, None, None] * distances().abs().sqrt())


def learned_kernel(e, q, k, v):
    d = distances()
    features = torch.stack((d.abs().log1p() / torch.tensor(9.0, dtype=torch.float64).log(),
                            d.sign()), 2)
    out = e.network(features).movedim(2, 0)  # [2 heads, queries, keys]
    return softmax_attention(q, k, v, lambda s: (1 + out[4:].tanh()) * s + out[:4])


def contextual_gate(e, q, k, v):
    logits = torch.einsum("bhjc,hc->bhj", k.repeat_interleave(2, 1), e.direction)
    kept = torch.nn.functional.logsigmoid(logits + e.threshold[:, None])

    def forget(scores):
        sums = [[kept[:, :, j + 1:i + 1].sum(2) for j in range(LENGTH)] for i in range(LENGTH)]
        return scores + torch.stack([torch.stack(row, 2) for row in sums], 2)

    return softmax_attention(q, k, v, forget)


CASES = [("sqrt_alibi", "SqrtAlibi", sqrt_alibi),
         ("learned_kernel", "LearnedKernel", learned_kernel),
         ("contextual_gate", "ContextualGate", contextual_gate)]


class Examples(unittest.TestCase):
    def test_each_agrees_with_explicit_matrices(self):
        for file, name, plain in CASES:
            with self.subTest(file):
                encoding = made(file, name)
                torch.manual_seed(2)
                x = [torch.randn(2, heads, LENGTH, 6, dtype=torch.float64, requires_grad=True)
                     for heads in (4, 2, 2)]
                found = []
                for out in (encoding(*x), plain(encoding, *x)):
                    grads = torch.autograd.grad(out.square().sum(), [*x, *encoding.parameters()])
                    found.append([out, *grads])
                for a, b in zip(*found):
                    self.assertLess((a - b).abs().max().item(), 1e-10)

    def test_each_runs(self):
        self.assertEqual(sorted(path.stem for path in FOLDER.glob("*.py")),
                         sorted(file for file, _, _ in CASES))
        for file, _, _ in CASES:
            with self.subTest(file):
                run = subprocess.run([sys.executable, FOLDER / f"{file}.py"], capture_output=True,
                                     text=True, check=True)
                self.assertIn("gradient", run.stdout)


class Page(unittest.TestCase):
    """docs/own-encodings.md"""

    def setUp(self):
        page = (FOLDER.parents[1] / "docs" / "own-encodings.md").read_text(encoding="utf-8")
        self.blocks = re.findall("```python\n(.*?)```", page, re.DOTALL)

    def test_its_code_runs_and_has_the_classes_of_the_examples(self):
        for block in self.blocks:
            exec(compile(block, "own-encodings.md", "exec"), {"__name__": "page"})
        for file, name, _ in CASES:
            text = (FOLDER / f"{file}.py").read_text(encoding="utf-8")
            body = re.search(f"class {name}.*?(?=\n\n\n)", text, re.DOTALL)[0]
            self.assertTrue(any(body in block for block in self.blocks), name)

    def test_the_first_example_has_at_most_15_lines(self):
        self.assertLessEqual(len([line for line in self.blocks[0].splitlines() if line]), 15)


if __name__ == "__main__":
    unittest.main()
