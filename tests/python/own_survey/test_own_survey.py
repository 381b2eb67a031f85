"""A survey with encodings of one's own: an example trains beside a built-in method, ALiBi as a
class gives the result of alibi, an interrupted survey continues, and errors come before work.

The environment has SEXTANT_COMMAND, the program, and SEXTANT_PYTHON, a Python with its torch.
"""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = os.environ["SEXTANT_COMMAND"]
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "encodings" / "sqrt_alibi.py"
MINE = '''
import sextant
import torch


class Alibi(sextant.Encoding):
    """ALiBi, in the precision of the built-in one."""

    def __init__(self, power=1, **sizes):
        super().__init__(**sizes)
        self.power = power
        self.register_buffer("slopes", sextant.tables.alibi_slopes(self.heads))

    def bias(self, distances):
        return -self.slopes[:, None] * distances.abs().double() ** self.power


class Rope(sextant.Encoding):
    def frequencies(self):
        return sextant.tables.rope_frequencies(self.head_dim)


class Everything(sextant.Encoding):
    """Trained terms of every kind, one for each layer."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.table = torch.nn.Parameter(0.1 * torch.randn(self.heads, 9, self.head_dim))
        self.values = torch.nn.Parameter(0.1 * torch.randn(9, self.head_dim))
        self.gate = torch.nn.Parameter(0.1 * torch.randn(self.key_heads, self.head_dim))
        self.logits = torch.nn.Parameter(torch.zeros(self.heads))

    def on_query(self, distances):
        return self.table, distances.clamp(0, 8).long()

    def on_value(self, distances):
        return self.values, distances.clamp(0, 8).long()

    def key_bias(self, k, positions):
        kept = torch.nn.functional.logsigmoid(4 + (k * self.gate[:, None]).sum(3))
        return -kept.cumsum(2).repeat_interleave(self.heads // self.key_heads, 1)

    def phases(self, k, positions):
        return (0.1 * k[..., :2]).cumsum(2)

    def sink(self):
        return self.logits


class Shared(Everything):
    shared = True


class Wrong(sextant.Encoding):
    def bias(self, distances):
        return distances[1:]


class Broken(sextant.Encoding):
    def bias(self, distances):
        return distances + undefined


class NoEncoding:
    pass
'''


class OwnSurvey(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        words = "the fox saw a red door and went in to see who was there at last".split()
        draw = random.Random(1)
        text = " ".join(draw.choice(words) for _ in range(30000))
        (self.path / "text.txt").write_text(text)
        (self.path / "mine.py").write_text(MINE)

    def words(self, methods, *more, out="out"):
        return [COMMAND, "survey", "--smoke", "--text", self.path / "text.txt", "--share", "0.2",
                "--out", self.path / out, "--methods", methods, *more]

    def survey(self, methods, *more, out="out", **environment):
        return subprocess.run(self.words(methods, *more, out=out), capture_output=True, text=True,
                              cwd=self.path, env={**os.environ, **environment}, check=False)

    def results(self, out="out"):
        found = {}
        for path in (self.path / out / "arms").iterdir():
            if (path / "result.json").exists():
                found[path.name] = json.loads((path / "result.json").read_text())
        return found

    def measured(self, result):
        """What a result says about the method; times and names left out."""
        left = {"arm", "train_seconds", "test_seconds", "machine"}
        return {key: value for key, value in result.items() if key not in left}

    def test_a_class_gives_the_result_of_the_built_in_method(self):
        ended = self.survey("alibi,mine.py:Alibi,rope,mine.py:Rope", "--jobs", "2")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("mine.py:Alibi", ended.stdout)
        results = self.results()
        self.assertEqual(len(results), 8)
        for task in ("0", "pairs-0"):
            self.assertEqual(self.measured(results[f"alibi-{task}"]),
                             self.measured(results[f"mine.py:Alibi-{task}"]))
            ours, rope = results[f"mine.py:Rope-{task}"], results[f"rope-{task}"]
            for a, b in zip(ours["train_loss"], rope["train_loss"]):
                self.assertLess(abs(a - b), 1e-4)
        self.assertGreater(len(results["mine.py:Alibi-0"]["lengths"]), 3)
        self.assertGreater(len(results["mine.py:Alibi-pairs-0"]["retrieval"]), 3)

    def test_an_example_trains_beside_alibi(self):
        ended = self.survey(f"alibi,{EXAMPLE}:SqrtAlibi", "--retrieval-steps", "0")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        results = self.results()
        own = results["sqrt_alibi.py:SqrtAlibi-0"]
        self.assertGreater(own["weights"], results["alibi-0"]["weights"])  # a slope for each head
        self.assertNotEqual(own["train_loss"], results["alibi-0"]["train_loss"])

    def test_every_kind_of_term_trains_and_an_interrupted_survey_continues(self):
        methods = "mine.py:Everything,mine.py:Shared:memory=16"
        more = ["--retrieval-steps", "0", "--layers", "2", "--key-heads", "1", "--bytes", "51200",
                "--save-seconds", "0"]
        whole = self.survey(methods, *more, out="whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        with open(self.path / "log", "w", encoding="utf-8") as log:
            running = subprocess.Popen(self.words(methods, *more), cwd=self.path, stderr=log,
                                       stdout=log)
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and running.poll() is None and not list(
                    self.path.glob("out/arms/*/checkpoint-*.sxt")):
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            self.assertEqual(running.wait(timeout=120), 130)
        self.assertLess(len(self.results()), 2)
        again = self.survey(methods, *more)
        self.assertEqual(again.returncode, 0, again.stderr)
        for name, result in self.results("whole").items():
            self.assertEqual(self.measured(result), self.measured(self.results()[name]), name)
        results = self.results()
        everything = results["mine.py:Everything-0"]["weights"]
        self.assertGreater(everything, results["mine.py:Shared:memory=16-0"]["weights"])

    def test_errors_come_before_any_training(self):
        (self.path / "syntax.py").write_text("import sextant\nclass Mine(\n")
        cases = {
            "none.py:Mine": "none.py:Mine: expected FILE.py:CLASS, but there is no file none.py",
            "mine.py:Nobody": "mine.py: expected a class Nobody that derives from sextant.Encoding,"
                              " but it is not there; the file has Alibi, Rope, Everything, Shared",
            "mine.py:NoEncoding": "but it is no subclass of sextant.Encoding",
            "mine.py:Wrong": r"Wrong.bias: expected [1 or heads=2, distances=9], but got [8]",
            "mine.py:Broken": "NameError: name 'undefined' is not defined",
            "mine.py:Alibi:strength=3": "unexpected keyword argument 'strength'",
            "mine.py:Alibi:source=3": "source: expected no such option",
            "syntax.py:Mine": "syntax.py (line 2): SyntaxError",
        }
        for method, message in cases.items():
            with self.subTest(method):
                ended = self.survey(f"rope,{method}")
                self.assertEqual(ended.returncode, 1)
                self.assertIn(message, ended.stderr)
                self.assertFalse((self.path / "out" / "arms").exists())

    def test_there_are_no_channels_to_drop(self):
        ended = self.survey("mine.py:Alibi", "--drop-channels", "4")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("mine.py:Alibi: drop_channels: expected 0", ended.stderr)

    def test_a_python_without_the_torch_of_the_program_is_an_error(self):
        ended = self.survey("mine.py:Alibi", SEXTANT_PYTHON="no-such-python")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot run no-such-python", ended.stderr)
        self.assertIn("SEXTANT_PYTHON names a Python", ended.stderr)
        (self.path / "torch").mkdir()
        (self.path / "torch" / "__init__.py").write_text(
            "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
        ended = self.survey("mine.py:Alibi", PYTHONPATH=str(self.path))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("SEXTANT_PYTHON names a Python", ended.stderr)

    def test_a_changed_file_is_refused_in_the_same_folder(self):
        more = ["--retrieval-steps", "0"]
        self.assertEqual(self.survey("mine.py:Alibi:power=1", *more).returncode, 0)
        (self.path / "mine.py").write_text(MINE + "\n# changed\n")
        ended = self.survey("mine.py:Alibi:power=1", *more)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("expected a result of", ended.stderr)


if __name__ == "__main__":
    unittest.main()
