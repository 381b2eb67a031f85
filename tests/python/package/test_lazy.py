"""Names of the package are loaded when they are used first."""

import subprocess
import sys
import unittest

import torch

import sextant


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Lazy(unittest.TestCase):
    def test_import_loads_neither_torch_nor_the_library(self):
        self.assertEqual(run("import sys, sextant; print('torch' in sys.modules)"), "False")

    def test_names_are_the_functions_after_any_first_use(self):
        for use in ("sextant.Cache", "sextant.rotate"):
            with self.subTest(use):
                self.assertEqual(
                    run(f"import sextant; {use}; print(sextant.attention.__name__, "
                        "sextant.method.__name__, sextant.rotate.__name__)"),
                    "attention method rotate")
        self.assertEqual(
            run("import sextant.tables as t; print(t.alibi_slopes(8).shape[0], t.__name__)"),
            "8 sextant.tables")

    def test_all_names_are_listed_and_there(self):
        for name in sextant.__all__:
            self.assertIn(name, dir(sextant))
            self.assertIsNotNone(getattr(sextant, name))
        with self.assertRaisesRegex(AttributeError, "'sextant' has no attribute 'turn'"):
            sextant.turn  # pylint: disable=pointless-statement,no-member

    @unittest.skipUnless(hasattr(torch, "compile"), "torch.compile is of torch 2")
    def test_the_first_use_may_be_inside_a_compiled_function(self):
        code = """
import sextant, torch
@torch.compile(fullgraph=True, backend="eager")
def attend(x):
    return sextant.attention(x, x, x, method="alibi")
print(list(attend(torch.ones(1, 2, 4, 8)).shape))
"""
        self.assertEqual(run(code), "[1, 2, 4, 8]")


if __name__ == "__main__":
    unittest.main()
