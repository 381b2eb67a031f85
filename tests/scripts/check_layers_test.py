"""Unit tests of scripts/check_layers.py: check_layers_test.py [UNITTEST ARGUMENTS]"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_layers  # noqa: E402


class CheckLayersTest(unittest.TestCase):
    def complaints(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            found = check_layers.calls(pathlib.Path(folder))
            return [line.removeprefix(f"{path}:") for line in found]

    def test_files_are_written_in_one_place(self):
        for line in ('std::ofstream out(path);', 'std::fopen(path, "wb");', 'fs::copy_file(a, b);',
                     '::open(path, O_WRONLY | O_TRUNC);'):
            self.assertEqual(self.complaints("sextant/cli/a.cc", f"\n{line}\n"),
                             [f"2: {line}: use write_file()"])
        self.assertEqual(self.complaints("sextant/files/write_file.cc", "::mkstemp(name);"), [])
        self.assertEqual(self.complaints("sextant/cli/a.cc", "zip_fopen_index(); // fopen()"), [])

    def test_files_of_python_are_written_in_one_place(self):
        for line in ('with open(path, "w") as file:', "path.write_text(text)"):
            self.assertEqual(self.complaints("python/sextant/a.py", line),
                             [f"1: {line}: use write_file()"])
        self.assertEqual(self.complaints("python/sextant/a.py", 'open(path, "rb")'), [])

    def test_lines_are_printed_in_one_place(self):
        for line in ('fmt::print("{}", text);', "std::cerr << text;", 'std::fputs(text, stderr);'):
            self.assertEqual(self.complaints("sextant/cli/a.cc", line),
                             [f"1: {line}: use lab/run/print.h"])
        self.assertEqual(self.complaints("sextant/cli/a.cc", "lab::print_text(text);"), [])

    def test_includes_go_down(self):
        self.assertIsNone(check_layers.complaint("files", "sextant/base/error.h"))
        self.assertIn("files may not see", check_layers.complaint("files", "sextant/cache/kv.h"))


if __name__ == "__main__":
    unittest.main()
