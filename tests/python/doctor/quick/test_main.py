"""``python -m sextant.doctor`` is the command, and JSON says what cannot be examined."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: E402 pylint: disable=wrong-import-position

from sextant.doctor import examine  # noqa: E402

CONFIG = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4}


class Folder(unittest.TestCase):
    """A folder with a config.json."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "config.json").write_text(json.dumps(CONFIG))


class Examined(Folder):
    """Models that cannot be examined."""

    def why(self, name):
        examined = json.loads(examine.examined_folder(str(name)))
        self.assertEqual(examined["layers"], [])
        return examined["unjudged"][0]["why"]

    def test_missing_packages_are_named(self):
        found = importlib.util.find_spec
        for package_name in ("torch", "transformers"):
            with mock.patch("importlib.util.find_spec", lambda name, *rest, missing=package_name:
                            None if name == missing else found("json")):
                self.assertRegex(self.why(self.folder), f"this Python .* has no {package_name}; "
                                 "SEXTANT_PYTHON names another")

    def test_a_configuration_that_is_no_file_is_named(self):
        path = self.folder / "config.json"
        for make in (lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path),
                     lambda: path.symlink_to(path)):
            path.unlink()
            make()
            self.assertIn(str(path), self.why(self.folder))
            self.assertIn("config.json", self.why(path))

    def test_a_defect_is_no_finding(self):
        err = io.StringIO()
        with mock.patch.object(examine, "examined_folder", side_effect=ValueError("odd")), \
                contextlib.redirect_stderr(err):
            self.assertEqual(examine.main([str(self.folder), str(self.folder / "out")]), 1)
        self.assertIn("a defect of doctor: ValueError: odd", err.getvalue())


class Module(Folder):
    """``python -m sextant.doctor`` beside the command."""

    def run_module(self, *arguments, **environment):
        paths = {"PYTHONPATH": str(package.ROOT / "python"), **environment}
        start = ("import runpy, sys, types; bare = types.ModuleType('sextant'); "
                 f"bare.__path__ = [{str(package.ROOT / 'python/sextant')!r}]; "
                 "sys.modules['sextant'] = bare; "
                 "runpy.run_module('sextant.doctor', run_name='__main__')")
        return subprocess.run([sys.executable, "-c", start, *map(str, arguments)],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, **paths})

    @unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
    def test_it_is_the_command(self):
        path = self.folder / "config.json"
        for arguments in ([path, path], [path, path, "--json"], [self.folder, "--jason"]):
            own = self.run_module(*arguments)
            command = subprocess.run(
                [os.environ["SEXTANT_COMMAND"], "doctor", *map(str, arguments)],
                capture_output=True, text=True, check=False)
            self.assertEqual((own.returncode, own.stdout, own.stderr),
                             (command.returncode, command.stdout, command.stderr))

    def test_a_missing_command_is_named(self):
        done = self.run_module(self.folder, SEXTANT_COMMAND="/nowhere/sextant")
        self.assertEqual(done.returncode, 2)
        self.assertIn("sextant doctor: expected the command sextant at one of /nowhere/sextant",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
