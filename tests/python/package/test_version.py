"""The package has the version of the source tree."""

import pathlib
import unittest

import sextant

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Version(unittest.TestCase):
    def test_is_that_of_the_source_tree(self):
        project = (ROOT / "CMakeLists.txt").read_text()
        self.assertIn(f"project(sextant VERSION {sextant.__version__} ", project)


if __name__ == "__main__":
    unittest.main()
