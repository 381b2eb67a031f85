"""The data of a report: fields, verdicts, exit statuses, JSON, text and page."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor.page import page_of  # noqa: E402
from sextant.doctor.report import (  # noqa: E402
    FIELDS, Finding, LayerRow, Report, Unjudged, joined, layer_text)
from sextant.doctor.table import text_of  # noqa: E402


def finding(*layers, got="queries: 1", severity="error", field="frequencies"):
    return Finding(layers, field, "pair 3 of 4: 0.1", got, "a cause", severity)


class Verdicts(unittest.TestCase):
    """The verdict follows from findings and from unjudged quantities."""

    def test_exit_statuses(self):
        report = Report("model", "config.json")
        self.assertEqual((report.verdict, report.exit_status), ("sound", 0))
        report.unjudged.append(Unjudged((), "rotation", "not found"))
        self.assertEqual((report.verdict, report.exit_status), ("cannot be judged", 2))
        report.findings.append(finding(1))
        self.assertEqual((report.verdict, report.exit_status), ("findings", 1))

    def test_a_warning_is_a_finding(self):
        report = Report("model", "config.json", findings=[finding(severity="warning")])
        self.assertEqual(report.exit_status, 1)

    def test_unknown_fields_and_severities_are_refused(self):
        with self.assertRaisesRegex(ValueError, "field: expected one of .*, but got 'frequency'"):
            finding(field="frequency")
        with self.assertRaisesRegex(ValueError, "severity: expected error or warning, but got"):
            finding(severity="fatal")


class Joining(unittest.TestCase):
    """Equal findings of several layers become one."""

    def test_layers_of_equal_findings_are_joined(self):
        joint = joined([finding(2), finding(0), finding(1, got="keys: 2")])
        self.assertEqual([f.layers for f in joint], [(0, 2), (1,)])

    def test_errors_stand_before_warnings_and_fields_in_their_order(self):
        fields = [FIELDS[5], FIELDS[1]]
        joint = joined([finding(0, severity="warning", field=FIELDS[1])]
                       + [finding(0, field=field) for field in fields])
        self.assertEqual([(f.severity, f.field) for f in joint],
                         [("error", FIELDS[1]), ("error", FIELDS[5]), ("warning", FIELDS[1])])

    def test_layer_text(self):
        self.assertEqual(layer_text([]), "all")
        self.assertEqual(layer_text([3, 0, 1, 2, 5]), "0-3, 5")
        self.assertEqual(layer_text(range(0, 40, 2), most=3), "0, 2, ... (20 layers)")


class Outputs(unittest.TestCase):
    """JSON, text and page have all parts of a report."""

    def setUp(self):
        row = LayerRow((0, 1), "full_attention", "half-split", "0-63 of 64", 10000.0, "YaRN x 4",
                       "-", 0.125, "frequencies")
        self.report = Report("a <model>", "config.json", {"torch": "2.8"}, [row],
                             [finding(0, 1)], [Unjudged((2,), "rotation", "not found")], ["noted"])

    def test_json(self):
        answer = json.loads(json.dumps(self.report.to_json()))
        self.assertEqual(answer["schema"], 1)
        self.assertEqual(answer["verdict"], "findings")
        self.assertEqual(set(answer["findings"][0]),
                         {"layers", "field", "expected", "got", "cause", "severity"})
        self.assertEqual(answer["layers"][0]["base"], 10000.0)
        self.assertEqual(answer["unjudged"][0]["why"], "not found")

    def test_text_fits_the_width(self):
        self.report.notes.append("word " * 60)
        text = text_of(self.report)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for part in ("full_attention: 0-1", "error: frequencies, layers 0-1", "a cause",
                     "not judged", "noted", "verdict: 1 finding\n"):
            self.assertIn(part, text)

    def test_page_shows_html_literally(self):
        page = page_of(self.report)
        self.assertIn("a &lt;model&gt;", page)
        self.assertNotIn("a <model>", page)
        for part in ("YaRN x 4", "a cause", "not found", "noted"):
            self.assertIn(part, page)


if __name__ == "__main__":
    unittest.main()
