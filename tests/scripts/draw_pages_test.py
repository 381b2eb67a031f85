"""Unit tests of scripts/draw_pages.py: draw_pages_test.py [UNITTEST ARGUMENTS]"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import draw_pages  # noqa: E402


class LinkTest(unittest.TestCase):
    """The first cell of a row that names a method is a link to the method's page."""

    def test_methods(self):
        self.assertEqual(draw_pages.linked("| `rope:base=1e6` | 1 |"),
                         "| [`rope:base=1e6`](methods/rope.md) | 1 |")
        self.assertEqual(draw_pages.linked("| `yarn` | 1 |"),
                         "| [`yarn`](methods/stretches.md) | 1 |")

    def test_others(self):
        for line in ("| `direct` | 1 |", "| rope | 1 |", "`rope`", "| --- |"):
            self.assertEqual(draw_pages.linked(line), line)


class BlockTest(unittest.TestCase):
    def test_is_a_command(self):
        page = "a\n<!-- sextant report x.json --part b -->\nold\n<!-- /sextant -->\nc"
        found = draw_pages.BLOCK.search(page)
        self.assertEqual(found[2], "report x.json --part b")
        self.assertEqual(draw_pages.BLOCK.sub(lambda f: f[1] + "new\n" + f[3], page),
                         page.replace("old", "new"))

    def test_what_the_command_prints_and_its_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = folder / "sextant"
            program.write_text("#!/bin/sh\nmkdir -p figures/findings\n"
                               "echo '<svg/>' > figures/findings/a.svg\necho \"$@\"\n",
                               encoding="utf-8")
            program.chmod(0o755)
            work = folder / "work"
            work.mkdir()
            files = draw_pages.drawn(str(program), work)
            page = files[draw_pages.DOCS / "findings.md"]
            self.assertIn("-->\nreport data/findings.json --part answer", page)
            self.assertIn(" --markdown\n<!-- /sextant -->", page)
            figures = draw_pages.DOCS / "figures/findings"
            self.assertEqual(files[figures / "a.svg"], "<svg/>\n")
            self.assertIsNone(files[figures / "sliding-by-length.svg"], "no block draws it")
            self.assertIn("report data/questions/claims.json data/questions/length-512.json",
                          files[draw_pages.DOCS / "questions.md"])


class KeepTest(unittest.TestCase):
    def test_leaves_details_out(self):
        arm = {"arm": {"label": "rope"}, "loss_at": [1], "pictures": {},
               "lengths": [{"length": 1, "sliding": {"mean": 1.23456789}, "sliding_blocks": [1]}]}
        results = {"sextant": "1", "settings": {"a": 1e-5}, "text": {}, "reference": None,
                   "arms": [arm], "verdicts": [], "claims": [], "summary": [{"mean": 1}]}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "arms/rope-0").mkdir(parents=True)
            (folder / "arms/rope-0/result.json").write_text("{}", encoding="utf-8")
            (folder / "command.txt").write_text("sextant survey", encoding="utf-8")
            (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
            draw_pages.keep(folder, folder / "kept.json")
            kept = json.loads((folder / "kept.json").read_text(encoding="utf-8"))
        self.assertEqual(kept["arms"], [{"arm": {"label": "rope"}, "lengths": [
            {"length": 1, "sliding": {"mean": 1.234568}}]}])
        self.assertEqual((kept["command"], kept["settings"]), ("sextant survey", {"a": 1e-5}))
        self.assertRegex(kept["date"], r"^\d{4}-\d\d-\d\d$")


if __name__ == "__main__":
    unittest.main()
