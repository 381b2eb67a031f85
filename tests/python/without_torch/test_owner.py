"""A second distribution in the folder of the package is refused by its name."""

import unittest

from sandbox import Sandbox


class Owner(unittest.TestCase):
    def test_alone_is_fine(self):
        with Sandbox() as box:
            box.own_distribution()
            box.write("sextant/notes.txt", "no module")
            box.write("sextant/mine.py", "# no distribution owns it")
            self.assertEqual(box.python("import sextant").returncode, 0)

    def test_another_distribution_is_refused(self):
        with Sandbox() as box:
            box.own_distribution()
            box.write("sextant/cli.py", "")
            box.distribution("sextant", ["sextant/__init__.py", "sextant/cli.py"])
            error = box.error("import sextant")
            self.assertIn("two distributions, sextant-attention and sextant, and cli.py", error)
            self.assertIn("pip uninstall sextant,", error)
            # The console script finds it even if the other distribution was installed last.
            box.write("sextant/__init__.py", "")
            self.assertIn("two distributions",
                          box.error("from sextant._command import main; main()"))

    def test_a_folder_of_another_distribution_is_refused(self):
        with Sandbox() as box:
            box.own_distribution()
            box.write("sextant/parts/__init__.py", "")
            box.distribution("helm-sextant", ["sextant/parts/__init__.py"])
            self.assertIn("sextant-attention and helm-sextant", box.error("import sextant"))


if __name__ == "__main__":
    unittest.main()
