"""The command sextant.conformance passes on our library and notices wrong results."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import torch

import sextant
from sextant.conformance import run_case
from sextant.conformance.__main__ import main
from sextant.conformance.runner import find_cases, own_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Conformance(unittest.TestCase):
    def run_on(self, *paths):
        return subprocess.run([sys.executable, "-m", "sextant.conformance", *map(str, paths)],
                              capture_output=True, text=True, check=False)

    def refused(self, *paths):
        """The message of the command about paths that it refuses."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(main([*map(str, paths)]), 2)
        return said.getvalue()

    def test_golden_cases(self):
        folders = [ROOT / "tests" / "golden" / "data"]
        shared = ROOT.parent / "shared" / "golden"
        folders += [shared / "relative", shared / "rotary"] if shared.is_dir() else []
        for folder in folders:
            with self.subTest(folder):
                done = self.run_on(folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"(?m)^[1-9]\d* passed, 0 failed")
                if folder == folders[0]:
                    count = len(list(folder.glob("*.safetensors")))
                    self.assertRegex(done.stdout, rf"(?m)^{count} passed, 0 failed, 0 not covered$")

    def test_the_cases_of_the_package_are_the_default(self):
        self.assertEqual(own_cases(), ROOT / "tests" / "golden" / "data")
        self.assertGreater(len(find_cases([own_cases()])), 30)

    def test_float32_off_by_more_than_roundings_fails(self):
        path = ROOT / "tests" / "golden" / "data" / "nope_causal.safetensors"

        def attention(q, k, v, **options):
            return sextant.attention(q, k, v, **options) * (1 + error * (q.dtype == torch.float32))

        library = types.SimpleNamespace(attention=attention)
        for error, status in ((0, "pass"), (2e-5, "FAIL")):
            self.assertEqual(run_case(path, library).status, status)

    def test_what_float32_may_does_not_change_from_run_to_run(self):
        path = ROOT / "tests" / "golden" / "data" / "shaw_bidir.safetensors"
        shares = {run_case(path, sextant).share for _ in range(2)}
        self.assertEqual(len(shares), 1)

    def test_a_path_that_is_not_there(self):
        self.assertIn("no-such-folder", self.refused("no-such-folder"))

    def test_a_file_that_is_no_case_is_an_error(self):
        good = (ROOT / "tests" / "golden" / "data" / "ssmax.safetensors").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "case.safetensors"
            for data in (b"", b"PK", good[:100], good[:-8], b"\x02" + 7 * b"\0" + b"[]",
                         good.replace(b"__metadata__", b"__metadatum_")):
                path.write_bytes(data)
                self.assertIn(f"{path}: expected safetensors with the text `meta`",
                              self.refused(path))

    def test_a_folder_without_cases_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn(f"{folder}: expected golden cases (*.safetensors or *.npz)",
                          self.refused(ROOT / "tests" / "golden" / "data", folder))


if __name__ == "__main__":
    unittest.main()
