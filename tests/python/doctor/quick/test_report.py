"""A report has the values and the text of the command."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor.reading import ReadingError  # noqa: E402
from sextant.doctor.facts import Facts  # noqa: E402
from sextant.doctor.report import Fact, Finding, Report, Unjudged  # noqa: E402

EXAMINED = {"subject": "LlamaModel", "against": "model.config", "versions": [["torch", "2.15.0"]],
            "config": "", "length": 0, "longest": 0, "layers": [], "findings": [],
            "unjudged": [{"layers": [], "what": "model", "why": "it has none"}],
            "notes": ["noted"]}
FINDING = {"layers": [0, 1], "kind": "", "field": "window", "expected": "all keys",
           "got": "8 keys", "cause": "", "severity": "error"}
ROW = {"layers": [0, 1], "kind": "", "rotates": "yes", "rotated": "0-3 of 4", "base": 1e4,
       "stretch": "-", "window": "-", "scale": None, "verdict": "window"}


class Values(unittest.TestCase):
    """The answer of the command as values."""

    def test_findings_and_rows(self):
        answer = {"schema": 2, "subject": "m", "against": "c", "versions": {},
                  "verdict": "findings", "layers": [ROW], "findings": [FINDING], "unjudged": [],
                  "notes": [], "facts": [{"fact": "mask", "status": "not measured", "layers": [1],
                                          "why": "flash"}]}
        report = Report(answer, "")
        self.assertEqual(report.facts, [Fact((1,), "mask", "not measured", "flash")])
        self.assertEqual(report.findings,
                         [Finding((0, 1), "window", "all keys", "8 keys")])
        self.assertEqual((report.rows[0].layers, report.rows[0].scale), ((0, 1), None))
        self.assertEqual((report.exit_status, report.to_json()), (1, answer))

    def test_warnings_alone_do_not_fail(self):
        answer = {"schema": 2, "subject": "m", "against": "c", "versions": {},
                  "verdict": "findings", "layers": [], "unjudged": [], "notes": [],
                  "findings": [{**FINDING, "severity": "warning"}]}
        self.assertEqual(Report(answer, "").exit_status, 0)
        unjudged = [{"layers": [], "what": "mask", "why": "it has none"}]
        self.assertEqual(Report({**answer, "unjudged": unjudged}, "").exit_status, 2)

    def test_facts_are_measured_in_all_layers_or_not(self):
        facts = Facts()
        for fact in ("window", "mask", "softcap", "rotation"):
            facts.see(fact)
        facts.miss("softcap", 2, "flash")
        facts.miss("softcap", 0, "flash")
        facts.miss("cache", None, "it fails")
        self.assertEqual(
            [(e["fact"], e["status"], e["layers"], e["why"])
             for e in facts.entries([Finding((0,), "chunk", "a", "b")])],
            [("rotation", "as configured", [], ""), ("window", "differs", [], ""),
             ("mask", "as configured", [], ""), ("cache", "not measured", [], "it fails"),
             ("softcap", "not measured", [0, 2], "flash")])


@unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
class Command(unittest.TestCase):
    """What was found goes to the command."""

    def test_a_report_is_that_of_the_command(self):
        report = Report.of(json.dumps(EXAMINED))
        self.assertEqual((report.verdict, report.exit_status), ("cannot be judged", 2))
        self.assertEqual(report.unjudged, [Unjudged((), "model", "it has none")])
        self.assertEqual((report.versions, report.notes), ({"torch": "2.15.0"}, ["noted"]))
        self.assertEqual(str(report).splitlines()[0],
                         "LlamaModel, against model.config (torch 2.15.0)")
        self.assertTrue(str(report).endswith("verdict: cannot be judged"))

    def test_a_refusal_is_an_error(self):
        with self.assertRaisesRegex(ReadingError, "standard input: expected values"):
            Report.of("{}")


if __name__ == "__main__":
    unittest.main()
