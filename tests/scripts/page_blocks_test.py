"""Unit tests of scripts/page_blocks.py: page_blocks_test.py [UNITTEST ARGUMENTS]"""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import page_blocks  # noqa: E402


def written(files, root, check=False):
    """(exit status, printed lines) of write()."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = page_blocks.write(files, check, "scripts/draw_x.py", root)
    return status, out.getvalue().splitlines()


class PageBlocksTest(unittest.TestCase):
    def test_blocks_of_the_kind_are_filled_and_the_rest_is_kept(self):
        page = ("A\n<!-- x:one -->\nold\n<!-- /x -->\n<!-- y:one -->\nB\n<!-- /y -->\n"
                "<!-- x:two:of-it -->\n<!-- /x -->\n")
        self.assertEqual(page_blocks.filled(page, "x", lambda name: f"new {name}\n"),
                         "A\n<!-- x:one -->\nnew one\n<!-- /x -->\n<!-- y:one -->\nB\n<!-- /y -->\n"
                         "<!-- x:two:of-it -->\nnew two:of-it\n<!-- /x -->\n")

    def test_a_check_names_the_files_that_differ_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "same").write_text("1", encoding="utf-8")
            (root / "left").write_text("1", encoding="utf-8")
            files = {root / "same": "1", root / "a/new": "2", root / "left": None,
                     root / "absent": None}
            self.assertEqual(written(files, root, check=True),
                             (1, ["stale: a/new", "stale: left", "run scripts/draw_x.py"]))
            self.assertFalse((root / "a").exists())
            self.assertEqual(written(files, root), (0, ["wrote a/new", "wrote left"]))
            self.assertEqual((root / "a/new").read_text(encoding="utf-8"), "2")
            self.assertFalse((root / "left").exists())
            self.assertEqual(written(files, root, check=True), (0, []))

    def test_paragraphs_wrap_at_100_columns(self):
        lines = page_blocks.paragraph("* " + "abcd " * 50 + "100 %").splitlines()
        self.assertTrue(all(len(line) <= 100 for line in lines))
        self.assertTrue(all(line.startswith("  abcd") for line in lines[1:]))


if __name__ == "__main__":
    unittest.main()
