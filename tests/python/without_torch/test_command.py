"""The console script runs the program that is in the package."""

import unittest

from sandbox import ROOT, Sandbox

MAIN = "from sextant._command import main; main()"


class Command(unittest.TestCase):
    def test_becomes_the_program(self):
        with Sandbox() as box:
            program = box.write("sextant/bin/sextant", '#!/bin/sh\necho "ran $@"\nexit 3\n')
            program.chmod(0o755)
            done = box.python(MAIN, "explain", "a b.json")
            self.assertEqual((done.stdout, done.returncode), ("ran explain a b.json\n", 3))

    def test_says_where_there_is_none(self):
        with Sandbox() as box:
            error = box.error(MAIN)
            self.assertIn("built from source", error)
            self.assertIn("./run", error)

    def test_is_the_script_of_the_distribution(self):
        project = (ROOT / "pyproject.toml").read_text()
        self.assertIn('name = "sextant-attention"', project)
        self.assertIn('sextant = "sextant._command:main"', project)


if __name__ == "__main__":
    unittest.main()
