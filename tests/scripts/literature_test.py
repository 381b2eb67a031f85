"""Tests of the data of docs/literature.md: literature_test.py [UNITTEST ARGUMENTS]"""
import contextlib
import io
import pathlib
import re
import statistics
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/literature"), str(ROOT / "scripts")]

import chinese_pages  # noqa: E402
import draw_literature  # noqa: E402
import lesson_pages  # noqa: E402
import literature_numbers as numbers  # noqa: E402

METHODS = ROOT / "docs/methods"
CHINESE = re.compile("[\u4e00-\u9fff]")


def sources_of(text):
    return {source for source, _, _ in numbers.KEY.findall(text)} - {"check"}


class LiteratureTest(unittest.TestCase):
    def test_every_item_of_the_audit_is_there_once(self):
        found = sorted(each for item in draw_literature.items() + draw_literature.misprints()
                       for each in item.get("ids", []))
        wanted = sorted(f"{note}{number}" for note, count in draw_literature.NOTES.items()
                        for number in range(1, count + 1))
        self.assertEqual(len(wanted), 142 + 25)
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
                for figure in section["figures"]:
                    name = figure if isinstance(figure, str) else figure["name"]
                    if name != figure:
                        self.assertEqual(set(figure), {"name", "en", "zh"})
                    self.assertTrue((ROOT / f"docs/images/methods/{name}.svg").is_file(), name)
        for item in draw_literature.items():
            for name in item["methods"]:
                self.assertTrue((METHODS / f"{name}.md").is_file(), name)
        anchors = set(re.findall(r'<a id="([^"]+)">', draw_literature.page("en")))
        for language in ("en", "zh"):
            for link in re.findall(r"\]\(#([^)]+)\)", draw_literature.page(language)):
                self.assertIn(link, anchors)

    def test_the_lesson_has_twelve_steps_with_a_picture_each(self):
        steps = lesson_pages.steps()
        self.assertEqual(len(steps), 12)
        for step in steps:
            self.assertTrue(step["pictures"], step["en"])
            self.assertTrue(step["commands"], step["en"])
            for language in ("en", "zh"):
                self.assertEqual(numbers.typed(step[f"text_{language}"]), [])
                self.assertTrue(numbers.KEY.search(step[f"number_{language}"]), step["en"])
                self.assertEqual(numbers.typed(step[f"number_{language}"]), [])

    def test_no_measured_number_is_typed(self):
        for language in ("en", "zh"):
            for name, text in draw_literature.texts(language):
                self.assertEqual(numbers.typed(text), [], name)

    def test_method_pages_have_settings_and_bounds_but_no_measured_numbers(self):
        """Their measured numbers are marked, see draw_literature.py."""
        settings = {"0.01", "0.02", "0.05", "0.1", "0.5", "0.7", "1.2", "0.53"}
        marked = 0
        for path in METHODS.glob("*.md"):
            text, here = numbers.MARKED.subn("", path.read_text("utf-8"))
            marked += here
            text = re.sub(r"```.*?```|<!--.*?-->|^\|.*?$|\d{4}\.\d{5}|\d+\.\d+\.\d+|"
                          r"(section|Face's code \(|Qwen|torch) ?\d+\.\d+", "", text,
                          flags=re.DOTALL | re.MULTILINE)
            self.assertLessEqual(set(numbers.typed(text)), settings, path.name)
        self.assertGreater(marked, 10)

    def test_every_number_of_the_pages_is_that_of_its_data(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(draw_literature.compare_numbers(), 0, said.getvalue())
        self.assertGreater(int(said.getvalue().split()[0]), 350)

    def test_a_number_that_is_not_the_data_s_is_found(self):
        text = "It has {findings|xpos|1024} at 1024, {findings|xpos|verdict}."
        page = numbers.drawn(text)
        self.assertEqual(page, "It has 1.715 ± 0.173 at 1024, drifts.")
        self.assertTrue(all(each[1] == each[2] for each in numbers.compared(text, page, "en")))
        other = numbers.compared(text, page.replace("1.715", "1.716"), "en")
        self.assertEqual(other[0], ("findings|xpos|1024", "1.716 ± 0.173", "1.715 ± 0.173"))
        self.assertEqual(numbers.compared(text, "It has 2.", "en")[0][1], None)
        marked = "<!-- number findings|xpos|change -->{}<!-- /number -->"
        self.assertEqual(numbers.remarked(marked.format("+0.098")), marked.format("+0.168 ± 0.127"))
        self.assertEqual(numbers.typed("1.5 in `0.1 ln s` of equation 1.2, {findings|t5|128}"),
                         ["1.5"])

    def test_an_unknown_key_is_named(self):
        for key in ("findings|nothing|128", "findings|t5|100", "nothing|t5|128",
                    "claims|rope|claim", "findings|no-such-claim|claim", "findings|t5|loss",
                    "quick|t5|128", "arms|rope|128", "arms|none|far", "findings|absolute|128",
                    "check|ntk|nothing", "words|loss_at_128|least", "words|rotation_speed|mean"):
            with self.assertRaises(numbers.UnknownNumber, msg=key) as caught:
                numbers.number(key)
            self.assertIn(key, str(caught.exception))

    def test_classes_are_of_all_methods_that_were_trained_and_have_learned(self):
        methods = {name: numbers.methods_of("findings", name) for name in ("absolute", "relative")}
        self.assertFalse({"none", "clock", "pi", "rerope"} & set(sum(methods.values(), [])))
        self.assertLessEqual({"sinusoidal", "learned", "tupe"}, set(methods["absolute"]))
        self.assertLessEqual({"rope", "t5", "fire"}, set(methods["relative"]))
        means = [statistics.mean(numbers.summary("findings")[arm, "sliding_change", 1024, None][0]
                                 for arm in methods[name]) for name in methods]
        for name, mean in (*zip(methods, means), ("relative-minus-absolute", means[1] - means[0])):
            shown = numbers.number(f"findings|{name}|change").replace("−", "-")
            self.assertAlmostEqual(float(shown.split()[0]), mean, delta=0.001)

    def test_one_seed_has_no_interval(self):
        self.assertRegex(numbers.number("arms|none|128"), r"^\d\.\d{3}$")
        self.assertEqual({numbers.seeds(each) for each in numbers.NOTES}, {1})

    def test_chinese_summaries_have_every_claim_and_no_typed_number(self):
        self.assertEqual(set(chinese_pages.words()), set(chinese_pages.known_claims()))
        bounds = {"0.1", "0.25"}
        for path in chinese_pages.FOLDER.glob("*.txt"):
            self.assertLessEqual(set(numbers.typed(path.read_text("utf-8"))), bounds, path.name)
        pages = {path.name: text for path, text in chinese_pages.pages().items()}
        self.assertEqual(set(pages), {"findings.zh.md", "questions.zh.md", "survey.zh.md"})
        for name, text in pages.items():
            self.assertNotRegex(text, r"[{}]|<!--", name)
            english = ROOT / "docs" / name.replace(".zh", "")
            self.assertIn(f"]({name})", english.read_text("utf-8"))
        findings = numbers.data("findings")
        for each in findings["claims"]:
            row = f"| {chinese_pages.words()[each['claim']]} |"
            self.assertIn(row, pages["findings.zh.md"])
        for source in numbers.QUESTIONS:
            for each in numbers.data(source)["claims"]:
                if chinese_pages.known_claims()[each["claim"]][1]:
                    self.assertIn(f"| {chinese_pages.words()[each['claim']]} |",
                                  pages["questions.zh.md"])

    def test_languages_have_the_same_numbers(self):
        for english, chinese in zip(draw_literature.texts("en"), draw_literature.texts("zh")):
            self.assertEqual(*(sorted(numbers.KEY.findall(each[1])) for each in (english, chinese)))

    def test_numbers_stand_with_their_seeds(self):
        """A page with several seeds is linked beside its numbers; where there is one seed the text
        says so, and three seeds are used where they exist."""
        for language, one, zero in (("en", "one seed", "seed 0"), ("zh", "一个种子", "种子 0")):
            for name, text in draw_literature.texts(language):
                said = draw_literature.linked(text, language)
                for source in sources_of(text):
                    page = "questions" if source in numbers.QUESTIONS else source
                    self.assertIn(one if numbers.seeds(source) == 1 else f"{{{page}}}",
                                  said if numbers.seeds(source) == 1 else text, name)
                if "|share@" in text:
                    self.assertIn(zero, text, name)
        self.assertEqual({numbers.seeds(each) for each in ("findings", *numbers.QUESTIONS)}, {3})
        known = {key[0] for each in ("findings", *numbers.QUESTIONS)
                 for key in numbers.summary(each)}
        quick = {arm for source, arm, _ in draw_literature.quoted_numbers() if source == "quick"}
        self.assertFalse(quick & known)

    def test_intervals_and_changes_are_those_of_the_report(self):
        """docs/findings.md is drawn by `sextant report`, which computes them itself."""
        report, checked = (ROOT / "docs/findings.md").read_text("utf-8"), 0
        for source, arm, measure in draw_literature.quoted_numbers():
            row = re.search(rf"^\| \[?`{re.escape(arm)}`.*$", report, re.MULTILINE)
            if source != "findings" or not row or measure in ("verdict", "machine"):
                continue
            rows = re.findall(rf"^\| \[?`{re.escape(arm)}`.*$", report, re.MULTILINE)
            shown = numbers.number(f"{source}|{arm}|{measure}").replace("± ", "±")
            self.assertTrue(any(f" {shown} |" in each for each in rows), (arm, measure, shown))
            checked += 1
        self.assertGreater(checked, 40)

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
