"""Unit tests of scripts/draw_findings.py and its parts: draw_findings_test.py [ARGUMENTS]"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import draw_findings  # noqa: E402
import findings_charts  # noqa: E402
import findings_data  # noqa: E402
import findings_tables  # noqa: E402
import survey_claims  # noqa: E402
from findings_answers import answers  # noqa: E402

SETTINGS = {
    "model": {"layers": 3, "width": 128, "heads": 4},
    "training": {"length": 128, "bytes": 800000}, "test": {"lengths": [128, 1024], "blocks": 64},
    "retrieval": {"length": 64, "lengths": [64, 256, 512], "layers": 2, "width": 64, "steps": 400,
                  "batch": 64, "texts": 128},
    "threads": 1}


def text_row(trained, longest):
    return {"train_seconds": 90.0, "test_seconds": 10.0, "weights": 600000,
            "sliding": {"128": trained, "1024": longest}}


def pair_row(far, near=1.0):
    return {"train_seconds": 40.0, "test_seconds": 5.0, "weights": 100000,
            "far": {"64": 1.0, "256": far, "512": far}, "near": {"64": near, "512": near}}


def method(base="", losses=(), far=()):
    return {"base": base, "text": {str(n): text_row(*each) for n, each in enumerate(losses)},
            "pairs": {str(n): pair_row(each) for n, each in enumerate(far)}}


def document(methods, planned=12, done=12, claims=()):
    return {"command": "sextant survey", "date": "2026-11-29", "sextant": "0.2.0",
            "machines": ["a machine"], "planned": planned, "done": done, "seeds": 3,
            "settings": SETTINGS, "text": {}, "methods": methods, "known_claims": 95,
            "claims_of_arms": 64, "claims": list(claims)}


def survey(methods, **more):
    return findings_data.Survey(document(methods, **more))


NONE = method(losses=((2.5, 2.6), (2.5, 2.6)), far=(1, 1))
WHOLE = {
    "none": NONE,
    "rope": method(losses=((1.5, 3.0), (1.6, 3.1)), far=(0.1, 0.1)),
    "t5": method(losses=((1.5, 1.55), (1.6, 1.65)), far=(0.9, 0.7)),
    "shaw": method(losses=((1.5, 1.57), (1.6, 1.64)), far=(0.8, 0.8)),
    "fox": method(losses=((1.6, 1.65), (1.7, 1.75)), far=(0.8, 0.8)),
    "alibi": method(losses=((1.5, 1.5), (1.6, 1.6)), far=(0.1, 0.1)),
    "rerope": method("rope", ((1.5, 1.52), (1.6, 1.62)), (0.9, 0.9)),
    "pi": method("rope", ((2.5, 2.52), (2.6, 2.62)), (0.9, 0.9))}


class StatisticsTest(unittest.TestCase):
    def test_an_interval_is_student_s_and_one_value_has_none(self):
        mean, half = findings_data.interval([1, 2, 3])
        self.assertAlmostEqual(mean, 2)
        self.assertAlmostEqual(half, 4.303 / 3**0.5)
        self.assertEqual(findings_data.interval([1.5]), (1.5, None))
        self.assertEqual(findings_data.interval([]), (None, None))

    def test_the_change_of_a_stretch_counts_from_the_trained_method(self):
        found = survey(WHOLE)
        self.assertAlmostEqual(found.change("pi", 1024)["0"], 1.02)
        self.assertAlmostEqual(found.change("pi", 128)["1"], 1)
        self.assertEqual([found.verdict(label) for label in ("pi", "rerope", "none", "rope")],
                         ["breaks", "holds", "not learned", "breaks"])

    def test_a_candidate_holds_and_finds_far_pairs(self):
        found = survey(WHOLE)
        self.assertEqual(found.candidates(""), ["t5", "shaw", "fox"])
        self.assertEqual(found.candidates("rope"), ["rerope"])

    def test_methods_are_tied_by_differences_of_the_same_seeds(self):
        found = survey(WHOLE)
        self.assertTrue(found.is_tied("shaw", "t5"))
        self.assertFalse(found.is_tied("fox", "t5"))

    def test_a_stretch_has_learned_the_tasks_of_its_base(self):
        methods = dict(WHOLE, rope=method(losses=((2.5, 2.5), (2.6, 2.6)), far=(0.1, 0.1)))
        self.assertEqual(survey(methods).verdict("rerope"), "not learned")


class PageTest(unittest.TestCase):
    def test_a_finished_survey_answers_both_questions(self):
        text = answers(survey(WHOLE)).replace("\n", " ")
        self.assertIn("All 12 arms are done", text)
        self.assertIn("**Train with `t5`, or with `shaw`.** Of 6 encodings, 4 hold", text)
        self.assertIn("`alibi` holds the loss, but does not find far pairs", text)
        self.assertIn("**Stretch a trained `rope` with `rerope`.**", text)
        self.assertIn("1 of these finds far pairs", text)

    def test_an_unfinished_survey_says_so_and_has_no_interval_for_one_seed(self):
        one = {"none": method(losses=((2.5, 2.6),)), "rope": method(losses=((1.5, 3.0),)),
               "t5": method(losses=((1.5, 1.55),)), "pi": method("rope"), "fox": method()}
        found = survey(one, done=3)
        text = answers(found)
        self.assertTrue(text.startswith("**3 of 12 arms are done so far; means are over the seeds"))
        self.assertIn("So far `t5` is first among the encodings", text)
        self.assertIn("none of 1 is measured yet", text)
        table = findings_tables.method_table(found, "")
        self.assertNotIn("±", table)
        self.assertIn("not yet", table)
        self.assertIn("Without a result so far: `fox`.", table)
        self.assertIn("64 of them compare arms", findings_tables.claims(found).replace("\n", " "))

    def test_a_diverged_training_is_named(self):
        methods = dict(WHOLE, fire={"base": "", "pairs": {}, "text": {"0": {"diverged": True}}})
        methods["fox"] = dict(methods["fox"], text=dict(methods["fox"]["text"],
                                                        **{"2": {"diverged": True}}))
        table = findings_tables.method_table(survey(methods), "")
        self.assertIn("(1 of 3 diverged)", table)
        self.assertIn("Diverged with every seed", table)

    def test_claims_are_counted_by_outcome(self):
        claim = {"subject": "biases", "claim": "x", "source": "y", "question": None,
                 "arms": ["alibi"], "measure": "change", "side": "below", "bound": 0.1,
                 "outcome": "holds", "over": "over 3 seeds", "mean": 0.05, "half": 0.01}
        found = survey(WHOLE, claims=[claim, dict(claim, outcome="fails"),
                                      dict(claim, question="Is it so, or not?")])
        self.assertIn("| all | **2** | **1** | **0** | **0** |", findings_tables.claims(found))
        self.assertIn("2 are confirmed", findings_tables.claims(found).replace("\n", " "))
        self.assertIn("(questions.md#is-it-so-or-not)", findings_tables.claim_list(found))
        self.assertIn("| 0.050 ± 0.010 |", findings_tables.claim_list(found))

    def test_a_chart_without_data_is_not_drawn(self):
        found = survey({"none": NONE, "rope": WHOLE["rope"]})
        self.assertEqual(findings_charts.image(found, "stretched_change"), "")
        self.assertIn(">t5<", findings_charts.change_chart(survey(WHOLE), ""))
        self.assertIn(">rope + rerope<", findings_charts.answer_chart(survey(WHOLE)))

    def test_an_unknown_block_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "block x: expected one of answers"):
            draw_findings.block("x", survey(WHOLE))


class TakeTest(unittest.TestCase):
    def test_a_result_keeps_losses_and_the_near_and_the_farthest_pairs(self):
        result = {"diverged": False, "train_seconds": 1.26, "test_seconds": 2, "weights": 5,
                  "lengths": [{"length": 128, "sliding": {"mean": 1.5}}],
                  "retrieval": [{"length": length, "distance": distance,
                                 "accuracy": {"mean": distance / 1000}}
                                for length in (64, 256) for distance in (8, 32, length - 8)]}
        row = findings_data.kept(result, SETTINGS)
        self.assertEqual(row["sliding"], {"128": 1.5})
        self.assertEqual(row["far"], {"64": 0.056, "256": 0.248})
        self.assertEqual(row["near"], {"64": 0.032, "256": 0.032})

    def test_arms_without_a_result_are_planned(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, base in (("rope-0", ""), ("pi-0", "rope-0")):
                path = pathlib.Path(folder) / "arms" / name
                path.mkdir(parents=True)
                arm = {"label": name[:-2], "seed": 0, "task": "text", "weights_from": base}
                (path / "arm.json").write_text(json.dumps({"arm": arm}), encoding="utf-8")
            (path / "result.json").write_text(json.dumps(
                {"diverged": True, "machine": "m"}), encoding="utf-8")
            found = findings_data.read_arms(pathlib.Path(folder), SETTINGS)
        self.assertEqual(found, ({"pi": {"base": "rope", "text": {"0": {"diverged": True}},
                                         "pairs": {}},
                                  "rope": {"base": "", "text": {}, "pairs": {}}}, ["m"], 2, 1))

    def test_means_and_verdicts_are_those_of_the_command(self):
        rows = [{"method": "t5", "measure": "sliding", "length": 128, "mean": 1.55,
                 "half_interval95": 0.6353}]
        verdicts = [{"method": "t5", "verdict": "holds"}]
        check = findings_data.disagreements
        self.assertEqual(check(document(WHOLE), {"summary": rows, "verdicts": verdicts}), [])
        rows[0]["mean"], verdicts[0]["verdict"] = 1.54, "breaks"
        self.assertEqual(len(check(document(WHOLE), {"summary": rows, "verdicts": verdicts})), 2)

    def test_claims_have_the_subject_and_source_of_the_command(self):
        known = [{"claim": "x", "subject": "biases", "source": "y", "question": None}]
        outcome = {"claim": "x", "arms": ["alibi"], "measure": "far", "side": "above", "bound": 0.5,
                   "outcome": "undecided", "mean": 0.51239, "half_interval95": None, "over": "z"}
        row, = findings_data.checked_claims({"claims": [outcome]}, known)
        self.assertEqual((row["subject"], row["source"], row["mean"], row["half"]),
                         ("biases", "y", 0.5124, None))
        self.assertEqual(survey_claims.cells(row),
                         ("**undecided**", "0.51", "`alibi`", "above 0.5"))

    def test_the_data_are_written_as_json_with_a_line_for_each_method(self):
        whole = document(WHOLE, claims=[{"claim": "x"}])
        text = findings_data.text_of(whole)
        self.assertEqual(json.loads(text), whole)
        self.assertIn('\n  "rope": {"base"', text)


if __name__ == "__main__":
    unittest.main()
