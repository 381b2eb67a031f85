"""The command line of doctor: errors are sentences on standard error, with exit status 2."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor.__main__ import main  # noqa: E402

CONFIG = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4}


def run(*arguments):
    """Exit status, output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(each) for each in arguments])
    return status, out.getvalue(), err.getvalue()


class Main(unittest.TestCase):
    """Wrong command lines and missing packages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "config.json").write_text(json.dumps(CONFIG))

    def test_missing_packages_are_named(self):
        found = importlib.util.find_spec
        for package_name in ("torch", "transformers"):
            with mock.patch("importlib.util.find_spec", lambda name, *rest, missing=package_name:
                            None if name == missing else found("json")):
                status, out, _ = run(self.folder)
            self.assertEqual(status, 2)
            self.assertRegex(" ".join(out.split()),
                             f"this Python .* has no {package_name}; SEXTANT_PYTHON names another")

    def test_a_page_in_a_folder_that_does_not_exist_is_refused_first(self):
        status, out, err = run(self.folder, "--html", self.folder / "none/x.html")
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, "--html: expected a file in a folder that exists, but got .*x.html")

    def test_options_of_models_are_refused_for_files(self):
        (self.folder / "model.GGUF").write_bytes(b"GGUF")
        for option in ("--weights", "--trust-remote-code"):
            status, _, err = run(self.folder / "model.GGUF", option)
            self.assertEqual(status, 2)
            self.assertIn(f"{option}: expected the folder of a model", err)

    @unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
    def test_files_go_to_the_command(self):
        (self.folder / "other").write_bytes(b"GGUF")  # recognised without a suffix
        with mock.patch("subprocess.run") as started:
            started.return_value.returncode = 1
            for subjects in ([self.folder / "other"], [self.folder, self.folder / "other"]):
                self.assertEqual(run(*subjects)[0], 1)
                self.assertEqual(started.call_args[0][0][1:],
                                 ["doctor", *map(str, subjects)])

    def test_a_configuration_that_is_no_file_is_named(self):
        path = self.folder / "config.json"
        for make in (lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path),
                     lambda: path.symlink_to(path)):
            path.unlink()
            make()
            status, out, _ = run(self.folder, "--json")
            self.assertEqual(status, 2)
            self.assertIn(str(path), out)
            self.assertEqual(run(path, "--json")[0], 2)

    def test_a_defect_is_no_finding(self):
        with mock.patch("sextant.doctor.__main__._examine", side_effect=ValueError("odd")):
            status, _, err = run(self.folder)
        self.assertEqual(status, 2)
        self.assertIn("a defect of doctor: ValueError: odd", err)


if __name__ == "__main__":
    unittest.main()
