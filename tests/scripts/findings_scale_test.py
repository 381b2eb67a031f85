"""Unit tests of scripts/findings_scale.py: findings_scale_test.py [ARGUMENTS]"""
import copy
import sys
import unittest

sys.dont_write_bytecode = True

from draw_findings_test import NONE, WHOLE, document, method, survey  # noqa: E402
from findings_answers import answers  # noqa: E402
from findings_data import Survey  # noqa: E402
from findings_scale import scale, scale_chart, scale_command  # noqa: E402
from findings_setting import limits  # noqa: E402

CLAIM = {"claim": "t5 holds", "arms": ["t5"], "measure": "change", "outcome": "holds"}


def with_larger(changed, claims=((), ()), **more):
    """The survey WHOLE beside one of three of its methods in a larger model."""
    methods = {label: copy.deepcopy(WHOLE[label]) for label in ("none", "rope", "t5", "rerope")}
    methods.update(changed)
    for each in methods.values():
        for row in [*each["text"].values(), *each["pairs"].values()]:
            row["weights"] *= 4
    larger = document(methods, claims=claims[1], **more)
    larger["settings"] = copy.deepcopy(larger["settings"])
    larger["settings"]["model"].update(width=256, heads=8)
    larger["settings"]["retrieval"]["width"] = 128
    return Survey(document(WHOLE, claims=claims[0]), Survey(larger))


def plain(text):
    return text.replace("\n", " ")


class ScaleTest(unittest.TestCase):
    def test_the_section_says_that_nothing_changes(self):
        found = with_larger({})
        text = plain(scale(found))
        self.assertIn("**The verdict on the loss is the same for all 4 methods.** The same methods "
                      "find far pairs.", text)
        self.assertIn("3 of the encodings and 1 of the stretches were trained and tested again "
                      "with 4.0 times the parameters: 3 layers of width 256 with 8 heads, "
                      "2 400 000 parameters, instead of 3 layers of width 128", text)
        self.assertIn("width 128 instead of 64", text)
        self.assertIn("the verdict is the same for all 4 methods", plain(answers(found)))
        self.assertIn("4 of 8 methods are tested at a second scale", plain(limits(found)))

    def test_changes_are_named(self):
        found = with_larger({"t5": method(losses=((1.4, 1.6), (1.5, 1.7)), far=(0.1, 0.1))})
        text = plain(scale(found))
        self.assertIn("is the same for 3 of 4 methods.** `t5`: *holds* in the smaller model, "
                      "*drifts* in the larger one.", text)
        self.assertIn("Only in the smaller model `t5` finds far pairs.", text)
        row, = (line for line in scale(found).splitlines() if line.startswith("| [`t5`]"))
        self.assertIn("| **holds** | **drifts** | 0.80 ± 1.27 | 0.10 ± 0.00 |", row)
        self.assertIn("the same for 3 of 4 methods", plain(answers(found)))

    def test_larger_models_that_are_not_better_are_named(self):
        self.assertIn("not better on short text: the loss of `rope` is 1.550 instead of 1.550, as "
                      "800 000 bytes", plain(scale(with_larger({}))))
        found = with_larger({"rope": method(losses=((1.4, 3.0), (1.5, 3.1)), far=(0.1, 0.1))})
        self.assertNotIn("not better", plain(scale(found)))

    def test_the_first_of_each_scale_is_among_the_methods_of_both(self):
        found = with_larger({"shaw": method(losses=((1.3, 1.31), (1.4, 1.41)), far=(0.9, 0.9))})
        self.assertIn("is `t5` (not told apart from `shaw`) in the smaller model and `shaw` in "
                      "the larger one", plain(scale(found)))

    def test_claims_that_both_scales_decide_are_compared(self):
        other = dict(CLAIM, claim="rope holds")
        found = with_larger({}, claims=((CLAIM, other), (dict(CLAIM, outcome="fails"), other)))
        self.assertIn("Both scales decide 2 claims of the literature, and agree on 1. “t5 holds” "
                      "holds in the smaller model and fails in the larger one.",
                      plain(scale(found)))

    def test_an_unfinished_second_scale_says_so_and_is_not_in_the_answers(self):
        found = with_larger({}, done=3)
        self.assertIn("**3 of its 12 arms are done so far.**", plain(scale(found)))
        self.assertNotIn("4.0 times", answers(found))

    def test_a_missing_second_scale_is_not_drawn(self):
        found = survey(WHOLE)
        self.assertEqual(scale(found), "The second scale is not run yet.\n")
        self.assertEqual(scale_command(found), "The second scale is not run yet.\n")
        self.assertIsNone(scale_chart(found))
        self.assertIn("A second scale is not run yet", plain(limits(found)))

    def test_the_chart_has_the_methods_that_hold_at_either_scale(self):
        chart = scale_chart(with_larger({}))
        self.assertIn(">t5<", chart)
        self.assertIn(">rope + rerope<", chart)
        self.assertNotIn(">rope<", chart)
        self.assertIsNone(scale_chart(with_larger({"none": NONE, "t5": method(), "rerope":
                                                   method("rope")})))


if __name__ == "__main__":
    unittest.main()
