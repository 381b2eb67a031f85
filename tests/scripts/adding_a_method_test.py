"""A new method is the three files of docs/adding-a-method.md; one script draws the lists."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAWN = {"README.md", "docs/index.md", "docs/methods/index.md", "docs/methods/index.zh.md",
         "mkdocs.yml"}


class AddingAMethod(unittest.TestCase):
    def test_the_lists_are_drawn_from_the_page(self):
        text = (ROOT / "docs/adding-a-method.md").read_text(encoding="utf-8")
        page = re.search(r"^````markdown\n(.*?)^````$", text, re.M | re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            shutil.copytree(ROOT / "scripts", tree / "scripts")
            (tree / "docs/methods").mkdir(parents=True)
            for path in [*map(ROOT.joinpath, DRAWN), *(ROOT / "docs/methods").glob("*.md")]:
                shutil.copy(path, tree / path.relative_to(ROOT))
            before = {name: (tree / name).read_text(encoding="utf-8") for name in DRAWN}
            (tree / "docs/methods/new-method.md").write_text(page, encoding="utf-8")
            draw = [sys.executable, tree / "scripts/draw_methods.py"]
            self.assertEqual(subprocess.run([*draw, "--check"], capture_output=True,
                                            check=False).returncode, 1)
            subprocess.run(draw, check=True, capture_output=True)
            subprocess.run([*draw, "--check"], check=True)
            for name in DRAWN:
                self.assertNotEqual((tree / name).read_text(encoding="utf-8"), before[name], name)
            index = (tree / "docs/methods/index.md").read_text(encoding="utf-8")
            self.assertIn("| [new-method](new-method.md) | trained slope", index)
            nav = (tree / "mkdocs.yml").read_text(encoding="utf-8")
            self.assertIn("          - new-method: methods/new-method.md\n", nav)


if __name__ == "__main__":
    unittest.main()
