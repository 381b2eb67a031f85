"""The scripts that pack the Python package refuse wrong arguments before they build anything."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Arguments(unittest.TestCase):
    def refusal(self, script, *arguments):
        done = subprocess.run([ROOT / script, *arguments], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_a_release_needs_the_tag_of_the_version(self):
        version = re.search(r"project\(sextant VERSION ([0-9.]+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn("expected a tag such as v0.2.0", self.refusal(".ci/release"))
        self.assertIn("expected a tag such as v0.2.0", self.refusal(".ci/release", "0.2.0"))
        self.assertIn("unknown argument x", self.refusal(".ci/release", "--dry-run", "x"))
        self.assertIn(f"v{version}, but got v9.9.9", self.refusal(".ci/release", "v9.9.9"))

    def test_a_wheel_needs_versions_of_torch_with_the_new_abi(self):
        script = "scripts/make_wheel.sh"
        self.assertIn('but got "newest"', self.refusal(script, "--torch", "newest"))
        self.assertIn("expected 2.7 or later, but got 2.6.0",
                      self.refusal(script, "--torch", "2.11.0,2.6.0"))
        self.assertIn("--torch: expected versions", self.refusal(script, "--torch", ""))
        self.assertIn("expected a value", self.refusal(script, "--out"))
        self.assertIn("unknown argument --from", self.refusal(script, "--from", "x"))

    def test_a_wheel_that_is_not_there(self):
        self.assertIn("there is no file /none.whl",
                      self.refusal("tests/check_wheel.sh", "/none.whl"))


if __name__ == "__main__":
    unittest.main()
