"""Unit tests of tests/check_layers.py: check_layers_test.py [UNITTEST ARGUMENTS]"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

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

    def test_the_laboratory_has_floors(self):
        header = "sextant/lab/result/result.h"
        for folder in ("lab/run", "lab/report", "lab/survey", "lab/torch", "cli"):
            self.assertIsNone(check_layers.complaint(folder, header), folder)
        for folder in ("lab/data", "lab/plan", "models"):
            self.assertIn(f"{folder} may not see", check_layers.complaint(folder, header))
        self.assertIsNone(check_layers.layer_of("lab/new"), "a new floor must be named")

    def test_a_layer_sees_only_layers_before_it(self):
        order = list(check_layers.LAYERS)
        for name, seen in check_layers.MAY_SEE.items():
            for other in seen:
                self.assertLess(order.index(check_layers.layer_of(other)), order.index(name))

    def test_the_picture_marks_what_a_row_may_include(self):
        lines = check_layers.picture().splitlines()
        cells = slice(lines[1].index("a"), lines[1].index("a") + 2 * len(check_layers.LAYERS), 2)
        rows = {line[2:cells.start].strip(): line[cells].rstrip() for line in lines[2:-1]}
        self.assertEqual(rows["base"], "\\")
        self.assertEqual(rows["files"], "x    \\")
        self.assertEqual(rows["attention/cpu/tile"], "xxo\\")
        self.assertEqual(rows["lab/plan"], "x    x   x   ox\\")

    def test_one_qualified_name_is_a_type_of_one_header(self):
        disk = "namespace sextant::lab {\nstruct Checkpoint {\n};\n}  // namespace sextant::lab\n"
        other = disk.replace("sextant::lab {", "sextant::chart {")
        headers = {"a.h": disk, "b.h": disk.replace("struct", "class SEXTANT_API"), "c.h": other,
                   "d.h": "namespace sextant::lab {\nstruct Checkpoint;\n"
                          "class X {\n  struct Checkpoint {};\n};\n}  // namespace sextant::lab\n"}
        self.assertEqual(check_layers.homonyms(headers),
                         ["b.h: sextant::lab::Checkpoint is a type of a.h, too"])
        derived = "namespace s {\nclass A final : public B {\nenum class C : int { kD };\n"
        self.assertEqual(list(check_layers.types(derived)), ["s::A", "s::C"])


if __name__ == "__main__":
    unittest.main()
