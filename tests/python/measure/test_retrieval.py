"""Retrieval by a small model of transformers: records, scores, chats, and continued work."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

try:
    import torch
    import transformers
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
except ImportError as error:
    raise unittest.SkipTest(str(error))

from sextant.measure import __main__ as worker  # noqa: E402
from sextant.measure import model, retrieval, tasks  # noqa: E402
from sextant.measure.arm import Arm, Progress  # noqa: E402
from sextant.measure.errors import MeasureError, NoAnswer, Stopped  # noqa: E402

TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if not loop.last %}</>"
            "{% endif %}{% endfor %}{% if messages[-1].role == 'assistant' %}</>{% endif %}")
LENGTHS, SAMPLES = [300, 360], 2
ALL = len(tasks.TASKS) * SAMPLES * sum(LENGTHS)


def small_tokenizer(frame=False):
    """Tokens are words of prompts, digits and single characters; frame: [ before texts and ] after
    them."""
    words = sorted({word for task in tasks.TASKS for word in tasks.make(
        task, 4000, 0, depths=1, seed=0, count_tokens=lambda text: len(text.split())
    ).prompt.split() if word.isalpha()})
    vocabulary = {token: n for n, token in enumerate(["?", "[", "]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(r"\d|[^\w\s]"), "isolated")])
    tokenizer.decoder = decoders.Fuse()
    if frame:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[ $A ]", special_tokens=[(one, tokenizer.token_to_id(one)) for one in "[]"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def small_model(vocabulary):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
        initializer_range=0.4)  # makes answers depend on positions
    made = transformers.LlamaForCausalLM(config).eval()
    # Settings of a checkpoint that must not matter.
    made.generation_config.update(do_sample=True, temperature=5.0, repetition_penalty=3.0)
    return made


class Scores(unittest.TestCase):
    def test_score(self):
        for answer, expected, score in (
                (" 1234567.", ["1234567"], 1), ("It is 12345678", ["1234567"], 0),
                ("71234567", ["1234567"], 0), ("1234567", ["1234567", "7654321"], 0.5),
                ("var abcde, VAR XYZZY", ["ABCDE", "XYZZY", "QWERT"], 2 / 3),
                ("1. LampBoat\n2. cuproad", ["lampboat", "cupstone"], 0.5), ("", ["a.c"], 0),
                ("abc", ["a.c"], 0), ("1,2 and 3", ["1", "2", "3", "4"], 0.75)):
            with self.subTest(answer):
                self.assertEqual(retrieval.score(answer, expected), score)


class Folders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.model = pathlib.Path(place.name, "model")
        tokenizer = small_tokenizer()
        tokenizer.chat_template = TEMPLATE
        tokenizer.save_pretrained(cls.model)
        small_model(len(tokenizer)).save_pretrained(cls.model)
        cls.loaded = model.load(str(cls.model), "float32", 1)

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def arm(self, name="retrieval", method=None, options=None, **more):
        folder = self.folder / name
        folder.mkdir()
        asked = {"lengths": LENGTHS, "tasks": list(tasks.TASKS), "samples": SAMPLES, "depths": 2,
                 "seed": 0, "chat": False, **more}
        (folder / "arm.json").write_text(json.dumps({
            "measure": "retrieval", "model": str(self.model), "endpoint": None, "threads": 1,
            "dtype": "float32", "retrieval": asked,
            "candidate": {"name": name, "method": method, "options": options or {}}}))
        return folder

    def test_arms_are_measured_and_resumed(self):
        folder = self.arm()
        self.assertEqual(retrieval.work(Arm(folder)), (ALL, 0))
        self.assertEqual(worker.main([str(folder)]), 0)
        made = Arm(folder).records()
        self.assertEqual([(r["length"], r["task"], r["sample"]) for r in made],
                         [(n, task, i) for n in LENGTHS for task in tasks.TASKS
                          for i in range(SAMPLES)])
        for record in made:
            self.assertEqual(set(record), {"task", "length", "depth", "sample", "tokens", "score",
                                           "expected", "answer", "seconds"})
            self.assertEqual(record["depth"], record["sample"] % 2
                             if record["task"] in tasks.WITH_DEPTH else None)
            self.assertLess(record["tokens"], record["length"])
            self.assertEqual(record["score"],
                             retrieval.score(record["answer"], record["expected"]))
            self.assertTrue(record["answer"])
        self.assertEqual(retrieval.work(Arm(folder)), (ALL, ALL))
        self.assertIn("transformers", json.loads((folder / "done.json").read_text()))
        # An interrupted write leaves a part of a line; records in the middle may be gone, too.
        path = folder / "records.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], *lines[6:9], lines[9][:-20]]))
        (folder / "done.json").unlink()
        self.assertEqual(worker.main([str(folder)]), 0)

        def timeless(records):
            return sorted(json.dumps({**record, "seconds": 0}) for record in records)
        self.assertEqual(timeless(Arm(folder).records()), timeless(made))

    def test_a_request_to_stop_keeps_records(self):
        arm = Arm(self.arm())
        progress = Progress(0, 0)
        added = []
        progress.add = lambda tokens, _: (added.append(tokens),
                                          setattr(progress, "_stop", sum(added) >= 600))
        with self.assertRaises(Stopped):
            retrieval.measure(arm, self.loaded, progress)
        self.assertEqual(len(Arm(arm.folder).records()), 2)
        self.assertFalse(Arm(arm.folder).done)
        self.assertEqual(added, [0, 300, 0, 300])
        self.assertEqual(retrieval.work(Arm(arm.folder)), (ALL, 600))

    def test_answers_are_the_likeliest_tokens(self):
        answerer = retrieval.Checkpoint(self.loaded)
        sample = tasks.make("needle", 300, 0, depths=1, seed=0,
                            count_tokens=answerer.count_tokens)
        ids = self.loaded.tokenizer(sample.prompt)["input_ids"]
        self.assertEqual(len(ids), sample.tokens)
        with torch.no_grad():
            for _ in range(sample.answer_tokens):
                logits = self.loaded.model(input_ids=torch.tensor([ids])).logits[0, -1]
                ids.append(int(logits.argmax()))
        expected = self.loaded.tokenizer.decode(ids[sample.tokens:])
        self.assertEqual(answerer.answer(sample), expected)

    def test_a_question_does_not_end_as_a_text_does(self):
        loaded = model.Loaded(self.loaded.model, small_tokenizer(frame=True), "framed")
        first, last = loaded.tokenizer.convert_tokens_to_ids(["[", "]"])
        answerer = retrieval.Checkpoint(loaded)
        sample = tasks.make("needle", 300, 0, depths=1, seed=0,
                            count_tokens=answerer.count_tokens)
        seen = []
        before = loaded.model.generate
        self.addCleanup(loaded.model.__dict__.pop, "generate", None)
        loaded.model.generate = lambda **more: (seen.extend(more["input_ids"][0].tolist()),
                                                before(**more))[1]
        answerer.answer(sample)
        self.assertEqual(seen[0], first)
        self.assertNotIn(last, seen)
        self.assertEqual(seen[1:], small_tokenizer()(sample.prompt)["input_ids"])
        self.assertEqual(len(seen), sample.tokens)
        arm = Arm(self.arm(lengths=[300], samples=1, tasks=["needle"]))
        retrieval.measure(arm, loaded, Progress(0, 0))
        self.assertEqual(arm.records()[0]["special_tokens"], "questions end without ]")
        (arm.folder / "done.json").unlink()
        records = arm.folder / "records.jsonl"
        records.write_text(json.dumps({**arm.records()[0], "special_tokens": ""}) + "\n")
        with self.assertRaisesRegex(MeasureError, "without ], but got none; measure in another"):
            retrieval.measure(Arm(arm.folder), loaded, Progress(0, 0))

    def test_an_answer_that_ran_out_while_the_model_reasoned(self):
        answerer = retrieval.Checkpoint(self.loaded)
        sample = tasks.make("needle", 300, 0, depths=1, seed=0,
                            count_tokens=answerer.count_tokens)
        decode = self.loaded.tokenizer.decode
        self.addCleanup(setattr, self.loaded.tokenizer, "decode", decode)
        self.loaded.tokenizer.decode = lambda ids, **_: f"<think>{len(ids)}"
        with self.assertRaisesRegex(NoAnswer, "spent them on reasoning"):
            answerer.answer(sample)
        self.loaded.tokenizer.decode = lambda *_, **__: "<think>8</think>7"
        with self.assertRaisesRegex(NoAnswer, "spent them on reasoning"):
            answerer.answer(sample)
        self.loaded.tokenizer.decode = lambda *_, **__: ""
        self.assertEqual(answerer.answer(sample), "")  # the model's own end, a wrong answer

    def test_chats_begin_the_answer(self):
        answerer = retrieval.Checkpoint(self.loaded, chat=True)
        ids = answerer._chat_ids("Which?", "The 1 is")
        self.assertEqual(self.loaded.tokenizer.decode(ids),
                         self.loaded.tokenizer.decode(self.loaded.tokenizer(
                             "<user>Which?</><assistant>The 1 is")["input_ids"]))
        sample = tasks.make("needle", 300, 0, depths=1, seed=0, count_tokens=answerer.count_tokens,
                            overhead=answerer.overhead)
        self.assertEqual(len(answerer._chat_ids(sample.question, sample.prefix)), sample.tokens)
        self.assertTrue(answerer.answer(sample))
        folder = self.arm(chat=True, lengths=[300], samples=1)
        retrieval.measure(Arm(folder), self.loaded, Progress(0, 0))
        self.assertEqual(len(Arm(folder).records()), len(tasks.TASKS))

    def test_positions_of_a_candidate(self):
        answers = []
        for name, method, options in (("own", None, {}), ("pi", "rope", {"stretch": "linear*8"})):
            folder = self.arm(name, method, options, lengths=[300], samples=2)
            retrieval.measure(Arm(folder), self.loaded, Progress(0, 0))
            answers.append([record["answer"] for record in Arm(folder).records()])
        self.assertNotEqual(*answers)

    def test_refusals(self):
        def fails(pattern, loaded=self.loaded, **more):
            name = str(len(list(self.folder.iterdir())))
            arm = Arm(self.arm(name, **more))
            with self.assertRaisesRegex(MeasureError, pattern):
                retrieval.measure(arm, loaded, Progress(0, 0))
            self.assertEqual(arm.records(), [])

        fails("retrieval: tasks: expected some of needle, .*, but got 'haystack'",
              tasks=["needle", "haystack"])
        fails(r"lengths: expected at least \d+ tokens for multi-value", lengths=[300, 90],
              tasks=["multi-value"])
        plain = model.Loaded(self.loaded.model, small_tokenizer(), "plain")
        fails("plain: chat: expected a tokenizer with a chat template", loaded=plain, chat=True)
        broken = small_tokenizer()
        broken.chat_template = "{{ messages[0].content + raise_exception('no system') }}"
        fails("plain: chat: the chat template fails: no system",
              loaded=model.Loaded(self.loaded.model, broken, "plain"), chat=True)


if __name__ == "__main__":
    unittest.main()
