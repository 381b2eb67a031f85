"""Unit tests of scripts/draw_questions.py: draw_questions_test.py [UNITTEST ARGUMENTS]"""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import draw_questions  # noqa: E402

QUESTION = "Is ALiBi's bias better than a window, which cuts off?"


def survey(length, claims=()):
    return {"settings": {"training": {"length": length}, "test": {"lengths": [length, 8 * length]}},
            "methods": {"rope": {
                "sliding": {str(length): [1.5, 0.25], str(8 * length): [2.0, None]},
                "task": {"64": {"1": [0.5, 0.1], "2": [1.0, 0.1]}}}},
            "claims": [{"question": QUESTION, "claim": text, "source": "a note", "arms": arms,
                        "measure": "longest", "side": "below", "bound": 0, "outcome": "holds",
                        "mean": -0.5, "half": 0.125} for text, arms in claims]}


class DrawQuestionsTest(unittest.TestCase):
    def test_a_claim_of_two_arms_has_a_signed_difference(self):
        surveys = {"a": survey(64, [("x", ["alibi", "window"])])}
        text = draw_questions.claims_table(surveys, QUESTION)
        self.assertIn("| x | **holds** | -0.500 ± 0.125 | `alibi` minus `window` | below 0 |",
                      text)
        self.assertNotIn("longest", text)

    def test_several_surveys_are_told_apart_by_their_lengths(self):
        text = draw_questions.claims_table({"a": survey(512, [("x", ["rope"])]),
                                            "b": survey(64, [("x", ["rope"])])}, QUESTION)
        rows = text.splitlines()
        self.assertIn("| L, longest |", rows[0])
        self.assertIn("| 64, 512 |", rows[2])
        self.assertIn("| 512, 4096 |", rows[3])

    def test_arms_of_two_surveys_with_the_same_plan_have_one_row(self):
        text = draw_questions.claims_table({"a": survey(64, [("x", ["rope"])]),
                                            "b": survey(64, [("x", ["rope"]), ("y", ["rope"])])},
                                           QUESTION)
        self.assertEqual([row.split(" | ")[0] for row in text.splitlines()[2:]], ["| x", "| y"])
        self.assertNotIn("L, longest", text)

    def test_a_block_of_an_unknown_question_or_kind_is_an_error(self):
        surveys = {"a": survey(64, [("x", ["rope"])])}
        self.assertIn("| x |", draw_questions.block("claims:is-alibis-bias-better", surveys))
        for name in ("claims:is-alibi", "claim:x"):
            with self.assertRaisesRegex(SystemExit, f"block {name}: expected one of"):
                draw_questions.block(name, surveys)

    def test_a_chart_has_a_range_per_length_and_leaves_out_arms_without_results(self):
        svg = draw_questions.chart("Title", survey(64), ("rope", "alibi"))
        self.assertIn("at 512", svg)
        self.assertIn(">rope<", svg)
        self.assertNotIn(">alibi<", svg)
        self.assertIsNone(draw_questions.chart("Title", survey(64), ("alibi",)))

    def test_direction_is_the_mean_over_distances(self):
        method = survey(64)["methods"]["rope"]
        self.assertEqual(draw_questions.direction_at(method, 64), 0.75)
        self.assertIsNone(draw_questions.direction_at(method, 128))


if __name__ == "__main__":
    unittest.main()
