"""Tests of the data of docs/literature.md: literature_test.py [UNITTEST ARGUMENTS]"""
import json
import pathlib
import re
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import draw_literature  # noqa: E402

METHODS = ROOT / "docs/methods"
CHINESE = re.compile("[\u4e00-\u9fff]")


def numbers_in(text):
    """The numbers with two or three decimals of a text."""
    return re.findall(r"(?<![\d.])\d\.\d{2,3}(?!\d)", text)


def quick_look_numbers():
    """The numbers of docs/data/quick-look.json and the differences within each of its lists."""
    look = json.loads((ROOT / "docs/data/quick-look.json").read_text("utf-8"))
    shares = look["share_of_variance_by_distance"]
    found = {f"{each:.2f}" for row in shares.values() if isinstance(row, list) for each in row}
    for row in [*look["first"].values(), *look["second"].values()]:
        if isinstance(row, list):
            found |= {f"{each:.3f}" for each in row}
            found |= {f"{b - a:.3f}" for a in row for b in row if b > a}
    return found


class LiteratureTest(unittest.TestCase):
    def test_every_item_of_the_audit_is_there_once(self):
        found = sorted(each for item in draw_literature.items() for each in item["ids"])
        wanted = sorted(f"{note}{number}" for note, count in draw_literature.NOTES.items()
                        for number in range(1, count + 1))
        self.assertEqual(len(wanted), 142)
        self.assertEqual(found, wanted)

    def test_every_item_has_commands_and_both_languages(self):
        for item in draw_literature.items():
            self.assertTrue(item["commands"], item["ids"])
            for key in ("en", "out_en"):
                self.assertFalse(CHINESE.search(item[key].replace("(内插)", "").replace(
                    "(外推)", "").replace("(远程衰减)", "")), item["ids"])
            for key in ("zh", "out_zh"):
                self.assertTrue(CHINESE.search(item[key]), item["ids"])

    def test_what_has_no_answer_names_the_command_that_decides_it(self):
        for item in draw_literature.items():
            open_in = ["ot decided yet" in item["out_en"],
                       any(each in item["out_zh"] for each in ("还没有结果", "还没有跑"))]
            self.assertEqual(*open_in, item["ids"])
            surveys = [each for each in item["commands"] if " survey " in each]
            if open_in[0]:
                self.assertTrue(surveys, item["ids"])
                self.assertTrue(all("--seeds 3" in each for each in surveys), item["ids"])

    def test_pages_figures_and_places_exist(self):
        for chapter in draw_literature.chapters():
            for section in chapter["section"]:
                for name in section["figures"]:
                    self.assertTrue((ROOT / f"docs/images/methods/{name}.svg").is_file(), name)
        for item in draw_literature.items():
            for name in item["methods"]:
                self.assertTrue((METHODS / f"{name}.md").is_file(), name)
        anchors = set(re.findall(r'<a id="([^"]+)">', draw_literature.page("en")))
        for language in ("en", "zh"):
            for link in re.findall(r"\]\(#([^)]+)\)", draw_literature.page(language)):
                self.assertIn(link, anchors)

    def test_figures_of_the_measurements_are_quoted_as_they_are(self):
        """A number with three decimals stands in the survey's page, the quick look, or a check."""
        sources = (ROOT / "docs/survey.md").read_text("utf-8")
        speeds = json.loads((ROOT / "docs/data/complex-words-result.json").read_text("utf-8"))[
            "rotation_speed"].values()
        sources += f" {min(speeds):.3f} {max(speeds):.3f}"
        # Differences of numbers of these files, and results that the checks print.
        derived = {"0.002", "0.009", "0.645", "0.993", "0.955", "0.948", "0.125", "0.016", "1.620",
                   "0.286"} | quick_look_numbers()
        for item in draw_literature.items() + draw_literature.misprints():
            for key in ("out_en", "out_zh", "en", "zh"):
                for number in numbers_in(item.get(key, "")):
                    self.assertTrue(len(number) < 5 or number in sources or number in derived,
                                    f"{item.get('ids', item.get('key'))}: {number}")

    def test_numbers_beside_the_quick_look_are_in_its_file(self):
        """A sentence that names the survey, too, may have numbers of its page."""
        survey, checked = (ROOT / "docs/survey.md").read_text("utf-8"), 0
        for item in draw_literature.items():
            for sentence in re.split(r"(?<=。)|(?<=\.) ", f"{item['out_en']} {item['out_zh']}"):
                if "{quick}" not in sentence:
                    continue
                for number in numbers_in(sentence):
                    checked += 1
                    self.assertTrue(number in quick_look_numbers()
                                    or "{survey}" in sentence and number in survey,
                                    f"{item['ids']}: {number}")
        self.assertGreater(checked, 20)

    def test_terms_and_conditions_are_of_the_same_methods(self):
        tested = {name for name in draw_literature.conditions() if ":" not in name}
        terms = set(tomllib.loads((draw_literature.DATA / "terms.toml").read_text("utf-8")))
        self.assertEqual(tested, terms)
        self.assertLessEqual(terms, {path.stem for path in METHODS.glob("*.md")})

    def test_a_misprint_is_named_on_the_pages_of_its_methods(self):
        for misprint in draw_literature.misprints():
            for name in misprint["pages"]:
                self.assertRegex((METHODS / f"{name}.md").read_text("utf-8"),
                                 rf"\.\./literature(\.zh)?\.md#misprint-{misprint['key']}\)")

    def test_every_method_page_ends_with_a_chinese_summary(self):
        for path in METHODS.glob("*.md"):
            if path.stem in ("index", "index.zh"):
                continue
            summary = path.read_text("utf-8").split("\n## 中文\n")[-1].split("<!-- index")[0]
            self.assertGreaterEqual(len(CHINESE.findall(summary)), 60, path.name)
            self.assertNotIn("\n## ", summary, path.name)

    def test_paragraphs_are_apart_by_one_blank_line_and_chinese_ones_have_one_line(self):
        for language in ("en", "zh"):
            self.assertNotIn("\n\n\n", draw_literature.page(language))
        for paragraph in draw_literature.page("zh").split("\n\n"):
            if not paragraph.startswith(("```", "|")) and CHINESE.search(paragraph):
                self.assertNotIn("\n", paragraph)


if __name__ == "__main__":
    unittest.main()
