"""Prompts of retrieval tasks: their lengths, places, answers, and that a seed decides them."""

import hashlib
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from sextant.measure import retrieval, tasks  # noqa: E402
from sextant.measure.errors import MeasureError  # noqa: E402


def words(text):
    """Words, digits and marks, as a stand-in for tokens."""
    return len(re.findall(r"[A-Za-z]{1,6}|\d|[^\w\s]|\n", text))


def make(task, length, sample=0, **more):
    given = {"depths": 5, "seed": 0, "count_tokens": words, **more}
    return tasks.make(task, length, sample, **given)


class Tasks(unittest.TestCase):
    def test_prompts_fill_their_lengths(self):
        for count in (words, len):
            for task in tasks.TASKS:
                for length in (1500, 2048, 8192, 32768) if count is len else (300, 1024, 4096):
                    for overhead in (0, 20):
                        with self.subTest(task=task, length=length, count=count.__name__):
                            made = make(task, length, count_tokens=count, overhead=overhead)
                            self.assertEqual(made.tokens, count(made.prompt) + overhead)
                            left = length - made.tokens - made.answer_tokens
                            self.assertGreaterEqual(left, 0)
                            self.assertLess(left, 40)

    def test_a_seed_decides_a_prompt(self):
        made = {(task, sample, seed): make(task, 512, sample, seed=seed).prompt
                for task in tasks.TASKS for sample in range(2) for seed in range(2)}
        self.assertEqual(len(set(made.values())), len(made))
        for (task, sample, seed), prompt in made.items():
            self.assertEqual(make(task, 512, sample, seed=seed).prompt, prompt)
        # A measurement that is continued by another version of Python needs the same prompts.
        joined = "\n".join(made.values()).encode()
        self.assertEqual(hashlib.sha256(joined).hexdigest()[:16], "7f408134efd90058")

    def test_prompts_have_what_is_expected(self):
        for task in tasks.TASKS:
            for sample in range(5):
                made = make(task, 1024, sample)
                self.assertEqual(retrieval.score(made.question, made.expected), 1, task)
                self.assertEqual(retrieval.score(made.prefix, made.expected), 0, task)
                self.assertLessEqual(words(", ".join(made.expected)), made.answer_tokens)
                self.assertTrue(made.prompt.endswith(made.prefix))
                self.assertRegex(made.prefix, r"\S$")

    def test_depth_places_the_needle(self):
        for task in tasks.WITH_DEPTH:
            for sample in range(5):
                made = make(task, 4096, sample)
                self.assertEqual(made.depth, sample / 4)
                place = made.prompt.index(made.expected[0]) / len(made.prompt)
                self.assertAlmostEqual(place, made.depth, delta=0.05)
        self.assertEqual(make("needle", 1024, depths=1).depth, 0.5)
        for task in set(tasks.TASKS) - set(tasks.WITH_DEPTH):
            self.assertIsNone(make(task, 1024).depth)

    def test_keys_and_values(self):
        def sentences(task):
            made = make(task, 1024)
            found = re.findall(r"special numbers? for (\S+) is (\d{7})\.", made.question)
            self.assertEqual(len({value for _, value in found}), len(found))
            return made, found

        made, found = sentences("multi-key")
        self.assertEqual(len({key for key, _ in found}), 4)
        key, = [key for key, value in found if value in made.expected]
        self.assertIn(f"for {key} mentioned", made.prefix)
        made, found = sentences("multi-value")
        self.assertEqual(len({key for key, _ in found}), 1)
        self.assertEqual({value for _, value in found}, set(made.expected))

    def test_variables_are_a_chain_in_order(self):
        made = make("variables", 1024)
        value, = re.findall(r"the value (\d+)\.", made.prefix)
        found = re.findall(r"VAR ([A-Z]{5}) = (?:VAR )?(\w+)\.", made.question)
        self.assertEqual([name for name, _ in found], made.expected)
        self.assertEqual([before for _, before in found], [value, *made.expected[:-1]])

    def test_common_words_are_the_common_ones(self):
        for length, common, often, seldom in ((300, 3, 6, 1), (480, 5, 10, 1), (1024, 10, 10, 1),
                                              (8192, 10, 30, 3)):
            made = make("common-words", length)
            listed = made.question.split("\n\n")[1].split()
            counts = {word: listed.count(word) for word in set(listed)}
            self.assertEqual(len(made.expected), common)
            self.assertEqual({counts.pop(word) for word in made.expected}, {often})
            self.assertEqual(set(counts.values()), {seldom})
            self.assertGreaterEqual(sum(counts.values()), common * often)

    def test_no_word_of_a_list_contains_another(self):
        pairs = {a + b for a in tasks.THINGS for b in tasks.THINGS if a != b}
        self.assertEqual(len(pairs), len(tasks.THINGS) * (len(tasks.THINGS) - 1))
        shortest = min(map(len, pairs))
        for word in pairs:
            inside = {word[first:last] for first in range(len(word))
                      for last in range(first + shortest, len(word) + 1)} - {word}
            self.assertFalse(inside & pairs, word)

    def test_filler_has_no_keys_and_no_digits(self):
        text = tasks._Filler("0", [])(5000)
        self.assertEqual(len(text.split()), 5000)
        self.assertNotRegex(text, r"\d|VAR|,\.")
        for key in tasks.QUALITIES + tasks.ANIMALS:
            self.assertNotIn(key, text)
        self.assertGreater(len(set(text.split(". "))), 500)

    def test_refusals(self):
        with self.assertRaisesRegex(MeasureError, "tasks: expected some of needle, .* got 'nedle'"):
            make("nedle", 1024)
        for task in tasks.TASKS:
            with self.assertRaisesRegex(MeasureError, f"at least (\\d+) tokens for {task}"
                                        ) as caught:
                make(task, 40)
            shortest = int(re.search(r"at least (\d+)", str(caught.exception)).group(1))
            for sample in range(50):
                self.assertLessEqual(make(task, shortest, sample).tokens, shortest)
            tasks.check_length(task, shortest, 50, seed=0, count_tokens=words)
            with self.assertRaisesRegex(MeasureError, f"tokens for {task} with this tokenizer"):
                tasks.check_length(task, shortest, 1, seed=0, count_tokens=words, overhead=99)
        with self.assertRaisesRegex(MeasureError, r"at most \d+ tokens for common-words"):
            make("common-words", 1 << 20)


if __name__ == "__main__":
    unittest.main()
