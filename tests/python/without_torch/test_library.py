"""The library is chosen by the version of torch, and a foreign one is refused before it is
loaded."""

import unittest

from sandbox import Sandbox

LOAD = "import sextant; sextant.load()"


class Library(unittest.TestCase):
    def test_import_needs_no_torch(self):
        with Sandbox() as box:
            done = box.python("import sys, sextant; print('torch' in sys.modules)")
            self.assertEqual(done.stdout, "False\n", done.stderr)
            self.assertIn("expected torch, but this Python has none", box.error(LOAD))
            self.assertIn("expected torch", box.error("import sextant; sextant.attention"))
            self.assertIn("has no attribute 'turn'", box.error("import sextant; sextant.turn"))

    def test_is_that_of_the_minor_version(self):
        with Sandbox() as box:
            for minor in ("2.8", "2.11", "2.15"):
                box.library(minor)
            for version in ("2.11.0+cu130", "2.11.3", "2.11.0a0+git123"):
                box.torch(version)
                done = box.python("import sextant; print(sextant.load()); sextant.load()")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("loaded"), 1)  # once for two calls
                self.assertIn("libsextant_torch-2.11.so", done.stdout.splitlines()[0])

    def test_another_version_is_refused_with_what_there_is(self):
        with Sandbox() as box:
            for minor in ("2.8", "2.11", "2.15"):
                box.library(minor)
            box.torch("2.16.0")
            error = box.error(LOAD)
            self.assertIn("for torch 2.16.0", error)
            self.assertIn("2.8, 2.11, 2.15 only", error)
            self.assertIn("pip install . in a clone", error)

    def test_no_library_at_all(self):
        with Sandbox() as box:
            box.torch("2.11.0")
            self.assertIn("found none", box.error(LOAD))
            self.assertIn("SEXTANT_LIBRARY: expected a library, but there is no file /none",
                          box.error(LOAD, SEXTANT_LIBRARY="/none"))

    def test_in_a_tree_is_the_one_that_was_built_for_the_torch(self):
        code = ("import pathlib, sextant, sextant._library as it; it._TREE = pathlib.Path('tree'); "
                "print(sextant.load())")
        with Sandbox() as box:
            box.torch("2.15.0")
            path = "tree/build/{}/lib/libsextant_torch.so"
            box.write(path.format("release"), "sextant-libtorch 1.13.0\0")
            self.assertIn("was built for torch 1.13.0", box.error(code))
            box.write(path.format("with-torch-2.8.0"), "sextant-libtorch 2.8.0\0")
            box.write(path.format("with-torch-2.15.0"), "sextant-libtorch 2.15.0\0")
            done = box.python(code)
            self.assertIn("tree/build/with-torch-2.15.0/lib", done.stdout, done.stderr)

    def test_one_that_was_built_for_another_torch_is_refused(self):
        with Sandbox() as box:
            path = box.library("2.11", built_for="2.15.0")
            box.torch("2.11.0")
            for environment in ({}, {"SEXTANT_LIBRARY": str(path)}):
                error = box.error(LOAD, **environment)
                self.assertIn("was built for torch 2.15.0, but this Python has torch 2.11.0", error)

    def test_one_for_another_build_of_the_same_torch_is_refused(self):
        with Sandbox() as box:
            box.torch("1.13.0a0")
            for name in ("libtorch_cpu.so", "libtorch_cpu.so.1.13", "libc10.so"):
                box.library("1.13", needs=["libm.so.6", name, "libc.so.6"])
                self.assertIn(f"needs {name}, which is not", box.error(LOAD))

    def test_one_that_does_not_say_its_torch_is_refused(self):
        with Sandbox() as box:
            box.torch("2.11.0")
            for content in (b"", b"\x7fELF and so on"):
                path = box.write("sextant/lib/libsextant_torch-2.11.so", content)
                self.assertIn(f"{path}: expected the version of torch", box.error(LOAD))

    def test_operators_that_are_there_are_not_loaded_again(self):
        with Sandbox() as box:
            box.torch("2.11.0")
            done = box.python("import torch, types\n"
                              "torch.ops.sextant = types.SimpleNamespace(method_attend=1)\n"
                              "torch.ops.loaded_libraries.add('/x/libsextant.so')\n"
                              "import sextant; print(sextant.load())")
            self.assertEqual(done.stdout, "/x/libsextant.so\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
