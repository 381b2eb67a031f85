"""Real checkpoints, where scripts/fetch_models.sh has downloaded them: SEXTANT_MODELS names the
folder, SEXTANT_COMMAND the program."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MODELS = pathlib.Path(os.environ.get("SEXTANT_MODELS", "none"))
if not MODELS.is_dir():
    raise unittest.SkipTest("SEXTANT_MODELS names no folder with models")

import torch  # noqa: E402
import transformers  # noqa: E402

import sextant.transformers as ours  # noqa: E402

SENTENCES = ["Position encodings tell a model the order of words.", "A cat sat.", "naïve €5"]
TEXT = "The quick brown fox jumps over the lazy dog, and the dog, who saw it, sleeps on. " * 200


class Real(unittest.TestCase):
    def test_minilm_is_accelerated(self):
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODELS / "all-minilm-l6-v2")
        model = transformers.AutoModel.from_pretrained(MODELS / "all-minilm-l6-v2").eval()
        inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
        with torch.no_grad():
            expected = model(**inputs).last_hidden_state
            got = ours.accelerate(model)(**inputs).last_hidden_state
        seen = inputs["attention_mask"].bool()
        self.assertLess((expected - got)[seen].abs().max().item(), 1e-5)

    def test_smollm2_answers_alike(self):
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODELS / "smollm2-135m")
        model = transformers.AutoModelForCausalLM.from_pretrained(
            MODELS / "smollm2-135m", dtype=torch.float32).eval()
        inputs = tokenizer("The capital of France is", return_tensors="pt")

        def answer():
            ids = model.generate(**inputs, do_sample=False, max_new_tokens=12)
            return tokenizer.decode(ids[0])
        expected = answer()
        self.assertIn("Paris", expected)
        self.assertEqual((ours.accelerate(model), answer())[1], expected)
        ours.stretch(model, "rerope", window=4096)  # more than there is: nothing changes
        self.assertEqual(answer(), expected)

    def test_the_command_measures_a_folder_and_a_gguf_file(self):
        losses = {}
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text.txt")
            text.write_text(TEXT, encoding="utf-8")
            for name in ("smollm2-135m", "smollm2-135m.gguf"):
                found = subprocess.run(
                    [os.environ["SEXTANT_COMMAND"], "evaluate", MODELS / name, "--lengths",
                     "128,256", "--text", text, "--blocks", "2", "--json", "--out",
                     pathlib.Path(folder, f"out-{name}")],
                    env={**os.environ, "SEXTANT_PYTHON": sys.executable}, capture_output=True,
                    text=True, check=False)
                self.assertEqual(found.returncode, 0, found.stderr)
                result = json.loads(found.stdout)
                self.assertEqual(result["train_length"], 8192)
                losses[name] = [at["sliding"]["mean"] for at in result["lengths"]]
        # Both are the same weights in bfloat16.
        for folder_loss, file_loss in zip(*losses.values()):
            self.assertAlmostEqual(folder_loss, file_loss, delta=0.02)


if __name__ == "__main__":
    unittest.main()
