"""Losses of checkpoints in slices, by bin and by byte, and the folders of arms."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

try:
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
except ImportError as error:
    raise unittest.SkipTest(str(error))

import numpy  # noqa: E402

from sextant.measure import __main__ as worker  # noqa: E402
from sextant.measure import losses, model  # noqa: E402
from sextant.measure.arm import Arm, Progress  # noqa: E402
from sextant.measure.errors import MeasureError, Stopped  # noqa: E402

VOCABULARY = 300
TEXT = "Größe und Maß: €5, naïve café, 北京. Plain words follow here. " * 60


BEGIN, END = 298, 299  # token numbers


def tokenizer_of_bytes(begins=False, ends=False):
    """One token per byte, of which some are joined, as in byte-level BPE; with <s> before texts and
    </s> after them if asked for."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: n for n, letter in enumerate(alphabet)}
    vocabulary |= {"or": len(vocabulary), "<s>": BEGIN, "</s>": END}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("o", "r")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    if begins or ends:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(["<s>"] * begins + ["$A"] + ["</s>"] * ends),
            special_tokens=[("<s>", BEGIN), ("</s>", END)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def small_model(kind="llama", **more):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, **more)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


class Losses(unittest.TestCase):
    def test_slices_give_the_losses_of_the_whole(self):
        before = losses.ROWS
        self.addCleanup(setattr, losses, "ROWS", before)
        losses.ROWS = 7
        tokens = numpy.random.default_rng(0).integers(0, VOCABULARY, 41)
        for kind, more in (("llama", {}), ("gemma2", {"head_dim": 8}), ("cohere", {}),
                           ("granite", {"logits_scaling": 3.0})):
            with self.subTest(kind):
                whole = small_model(kind, **more)
                losses.check_head(whole)
                got = losses.token_losses(whole, tokens)
                ids = torch.from_numpy(tokens)
                with torch.no_grad():
                    logits = whole(input_ids=ids[None, :-1]).logits[0].float()
                expected = torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none")
                numpy.testing.assert_allclose(got, expected.numpy(), rtol=2e-5, atol=2e-5)
                self.assertNotIn("forward", whole.base_model.__dict__)

    def test_bytes_of_tokens_add_up_to_those_of_the_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "text.txt")
            data = TEXT.encode()
            path.write_bytes(data)
            loaded = model.Loaded(None, tokenizer_of_bytes(), "small")
            ids = loaded.tokenizer(TEXT)["input_ids"]
            tokens, sizes = losses.blocks_of(loaded, path, (len(data),), 100, 3)
            self.assertEqual([len(block) for block in tokens], [101] * 3)
            self.assertEqual(tokens[0].tolist(), ids[:101])
            # A block may end within a character, whose first token has its bytes.
            decoded = len(loaded.tokenizer.decode(ids[1:101]).encode())
            self.assertLessEqual(abs(sizes[0].sum() - decoded), 3)
            every = losses._documents(loaded.tokenizer, path, (len(data),), 1)[0][1]
            self.assertEqual(int(every.sum()), len(data))

    def test_windows_begin_as_the_tokenizer_begins_a_text(self):
        """At each length as many tokens are scored, and as many are given to the model."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "text.txt")
            path.write_bytes(TEXT.encode())
            ends = (len(TEXT.encode()),)
            plain = losses.blocks_of(model.Loaded(None, tokenizer_of_bytes(), "small"), path, ends,
                                     64, 2)
            for begins, ends_too in ((True, False), (True, True)):
                loaded = model.Loaded(None, tokenizer_of_bytes(begins, ends_too), "small")
                self.assertEqual(loaded.begin, [BEGIN])
                blocks, sizes = losses.blocks_of(loaded, path, ends, 64, 2)
                numpy.testing.assert_equal((blocks, sizes), plain)  # bytes are those of the text
                for length in (64, 16):
                    got = losses.window(blocks[1], length, loaded.begin)
                    self.assertEqual(got.tolist(), [BEGIN, *blocks[1][-length:]])
            self.assertEqual(losses.window(blocks[1], 16, []).tolist(), blocks[1][-17:].tolist())
            self.assertEqual(losses.window(blocks[1], 16, [1, 2]).tolist()[:3],
                             [1, 2, blocks[1][-16]])

    def test_settings_that_contradict_the_tokenizer(self):
        for begins in (False, True):
            loaded = model.Loaded(None, tokenizer_of_bytes(begins, ends=True), "small")
            self.assertEqual(loaded.end, [END])
            for said in (None, False, True):
                loaded.says_begin = said
                self.assertEqual(bool(loaded.notes()), said is not None and said != begins)
            loaded.says_begin = not begins
            self.assertRegex(loaded.notes()[0], "small: its settings have add_bos_token false, but "
                             "its tokenizer begins texts with <s>" if begins else
                             "add_bos_token true, but its tokenizer puts no token before texts")

    def test_bins(self):
        found = losses.binned(numpy.arange(10.0), numpy.ones(10, dtype=int), 4)
        self.assertEqual(found, {"nats": [6.0, 22.0, 17.0], "tokens": [4, 4, 2],
                                 "bytes": [4, 4, 2]})

    def test_too_little_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "text.txt")
            path.write_bytes(TEXT.encode())
            loaded = model.Loaded(None, tokenizer_of_bytes(), "small")
            with self.assertRaisesRegex(MeasureError, "text: expected 5 sequences of 2001 tokens"):
                losses.blocks_of(loaded, path, (len(TEXT.encode()),), 2000, 5)


class Folders(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        small_model().save_pretrained(self.folder / "model")
        tokenizer_of_bytes().save_pretrained(self.folder / "model")
        (self.folder / "text.txt").write_bytes(TEXT.encode())

    def arm(self, name, method=None, **options):
        folder = self.folder / "arms" / name
        folder.mkdir(parents=True)
        assignment = {
            "measure": "losses", "model": str(self.folder / "model"), "dtype": "float32",
            "threads": 1, "text": "../../text.txt", "ends": [len(TEXT.encode())],
            "candidate": {"name": name, "method": method, "options": options},
            "losses": {"lengths": [64, 96], "blocks": 3, "stride": 32, "bin": 16}}
        (folder / "arm.json").write_text(json.dumps(assignment))
        return folder

    def test_arms_are_measured_and_resumed(self):
        folders = [self.arm("direct"), self.arm("yarn", "rope", stretch="yarn*2")]
        self.assertEqual(worker.main([str(folder) for folder in folders]), 0)
        own, yarn = (Arm(folder).records() for folder in folders)
        self.assertEqual([(r["block"], r["length"]) for r in own],
                         [(b, n) for b in range(3) for n in (64, 96)])
        for record in own:
            self.assertAlmostEqual(sum(record["nats"]) / record["length"], math.log(VOCABULARY),
                                   delta=1)
            self.assertEqual(record["last"][1], 32)
        self.assertNotEqual(own[0]["nats"], yarn[0]["nats"])
        self.assertEqual(json.loads((folders[0] / "done.json").read_text())["attention"], "sextant")
        # An interrupted write leaves a part of a line; the rest is measured again.
        records = folders[0] / "records.jsonl"
        whole = records.read_bytes()
        records.write_bytes(whole[:-30])
        (folders[0] / "done.json").unlink()
        self.assertEqual(losses.work(Arm(folders[0])), (480, 384))
        self.assertEqual(worker.main([str(folders[0])]), 0)

        def timeless(lines):
            return [{**json.loads(line), "seconds": None} for line in lines.splitlines()]
        self.assertEqual(timeless(records.read_bytes()), timeless(whole))

    def needs_begin(self):
        """Writes a model that predicts the byte "a" only after <s>, and its text."""
        config = transformers.LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
            num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=256)
        made = transformers.LlamaForCausalLM(config)
        letter = tokenizer_of_bytes()("a")["input_ids"][0]
        with torch.no_grad():
            for weights in made.parameters():
                weights.zero_()
            layer, embedding = made.model.layers[0], made.model.embed_tokens.weight
            for norm in (made.model.norm, layer.input_layernorm, layer.post_attention_layernorm):
                norm.weight.fill_(1)
            embedding[:, 0], embedding[BEGIN, 0], embedding[BEGIN, 1] = 1, 0, 1
            layer.self_attn.v_proj.weight[2, 1] = 1e4
            layer.self_attn.o_proj.weight.copy_(torch.eye(64))
            made.lm_head.weight[letter, 2] = 10
        made.save_pretrained(self.folder / "model")
        (self.folder / "text.txt").write_bytes(b"a" * len(TEXT.encode()))

    def test_a_model_that_needs_its_first_token(self):
        self.needs_begin()
        folder = self.arm("direct")
        self.assertEqual(worker.main([str(folder)]), 0)  # the tokenizer adds none
        before = (folder / "records.jsonl").read_bytes()
        chance = Arm(folder).records()
        self.assertNotIn("special_tokens", chance[0])
        tokenizer_of_bytes(begins=True).save_pretrained(self.folder / "model")
        (folder / "done.json").unlink()
        (folder / "records.jsonl").write_bytes(before[:-30])
        # Records of an earlier version are not continued with windows that begin otherwise.
        self.assertEqual(worker.main([str(folder)]), 1)
        with self.assertRaisesRegex(MeasureError, "windows begin with <s>, but got none; measure"):
            losses.measure(Arm(folder), model.load(str(self.folder / "model"), "float32", 1),
                           Progress(0, 0))
        (folder / "records.jsonl").unlink()
        self.assertEqual(worker.main([str(folder)]), 0)
        for record, other in zip(Arm(folder).records(), chance):
            self.assertLess(sum(record["nats"]) / record["length"], 0.01)
            self.assertAlmostEqual(sum(other["nats"]) / other["length"], math.log(VOCABULARY),
                                   delta=0.01)
            for field in ("block", "length", "tokens", "bytes"):
                self.assertEqual(record[field], other[field])
            self.assertEqual(record["special_tokens"], "windows begin with <s>")
        facts = json.loads((folder / "done.json").read_text())
        self.assertEqual(facts["special_tokens"], "windows begin with <s>")
        self.assertNotIn("notes", facts)

    def test_settings_of_a_gguf_file(self):
        try:
            from gguf import GGUFWriter
        except ImportError as error:
            self.skipTest(str(error))
        for said in (None, False, True):
            writer = GGUFWriter(self.folder / "small.gguf", "llama")
            if said is not None:
                writer.add_add_bos_token(said)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            self.assertIs(model._says_begin(str(self.folder), "small.gguf"), said)

    def test_settings_of_a_folder(self):
        path = self.folder / "model" / "tokenizer_config.json"
        for said, expected in ((True, True), (False, False), ("yes", None), (None, None)):
            path.write_text(json.dumps({**json.loads(path.read_text()), "add_bos_token": said}))
            self.assertIs(model._says_begin(str(path.parent)), expected)
        path.write_text("[")
        self.assertIsNone(model._says_begin(str(path.parent)))
        self.assertIsNone(model._says_begin(str(self.folder / "none")))

    def test_a_request_to_stop_keeps_records(self):
        folder = self.arm("direct")
        loaded = model.load(str(self.folder / "model"), "float32", 1)
        progress = Progress(480, 0)
        progress.add = lambda tokens, _: setattr(progress, "_stop", tokens > 0)
        with self.assertRaises(Stopped):
            losses.measure(Arm(folder), loaded, progress)
        self.assertEqual(len(Arm(folder).records()), 1)

    @unittest.skipUnless("SEXTANT_COMMAND" in os.environ, "SEXTANT_COMMAND names no program")
    def test_written_folders_have_the_measured_losses_in_plain_transformers(self):
        for name in ("yarn", "ntk", "pi", "dynamic"):
            with self.subTest(name):
                out, longer = self.folder / f"out-{name}", self.folder / name
                subprocess.run(
                    [os.environ["SEXTANT_COMMAND"], "extend", self.folder / "model", "--length",
                     "128", "--candidates", name, "--text", self.folder / "text.txt", "--blocks",
                     "2", "--dtype", "float32", "--out", out, "--write", longer, "--choose", name],
                    env={**os.environ, "SEXTANT_PYTHON": sys.executable}, check=True,
                    capture_output=True)
                plain = transformers.AutoModelForCausalLM.from_pretrained(longer).eval()
                self.assertEqual(plain.config._attn_implementation, "sdpa")
                loaded = model.Loaded(plain, tokenizer_of_bytes(), name)
                tokens, _ = losses.blocks_of(loaded, out / "text.txt", (len(TEXT.encode()),), 128,
                                             2)
                for record in Arm(out / "arms" / name).records():
                    nats = losses.token_losses(plain, tokens[record["block"]]
                                               [-record["length"] - 1:])
                    self.assertAlmostEqual(nats.sum() / record["length"],
                                           sum(record["nats"]) / record["length"], delta=2e-4)

    def test_refusals(self):
        with self.assertRaisesRegex(MeasureError, "dtype: expected one of auto"):
            model.load(str(self.folder / "model"), "int8")
        with self.assertRaisesRegex(MeasureError, "expected a folder with config.json"):
            model.load(str(self.folder / "none"))
        (self.folder / "model" / "model.safetensors").unlink()
        with self.assertRaisesRegex(MeasureError, "cannot load it"):
            model.load(str(self.folder / "model"))
        folder = self.arm("odd", "rerope", windo=3)
        self.assertEqual(worker.main([str(folder)]), 1)


if __name__ == "__main__":
    unittest.main()
