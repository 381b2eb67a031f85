"""Tests of bench/draw_figures.py, and of the rows that bench/goals.py writes for it."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import draw_figures  # noqa: E402
import records  # noqa: E402
import result_rows  # noqa: E402
import svg_chart  # noqa: E402

FIELDS = {"name", "shape", "ours", "peer", "peer_version", "unit", "rounds", "spread", "ratio"}


def row(name, ratio, shape="forward, N 2048, D 64, H 8", unit="s", peer_version="plain"):
    return {"name": name, "shape": shape, "ours": None, "peer": None, "peer_version": peer_version,
            "unit": unit, "rounds": 5, "spread": 1.2, "ratio": ratio}


def document(bench, date, rows, machine="zen5-2c"):
    return {"schema": 1, "bench": bench, "commit": "0" * 12, "date": date, "machine": machine,
            "threads": 2, "command": "none", "statistic": "median", "rows": rows}


def write(folder, *documents):
    for each in documents:
        path = folder / each["machine"] / f"{each['date']}-{each['bench']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(records.text(each), encoding="utf-8")


class DrawFiguresTest(unittest.TestCase):
    def test_the_newest_file_of_a_machine_and_benchmark_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            old = document("peers", "2026-01-01", [row("none", 1.0)])
            new = [document(f"peers-{size}", "2026-02-01", [row("none", 2.0)])
                   for size in (64, 128)]
            other = document("peers", "2026-01-01", [row("none", 3.0)], "zen3-2c")
            write(pathlib.Path(folder), old, *new, other)
            found = draw_figures.select(draw_figures.read(pathlib.Path(folder)), "peers")
        self.assertEqual(sorted(each["ratio"] for _, each in found), [2.0, 2.0, 3.0])

    def test_a_length_is_read_from_the_shape_where_it_is_one(self):
        for shape, length in (("forward, N 2048, D 64", 2048), ("forward, N 2048 and 8192", None),
                              ("forward, D 64", None)):
            self.assertEqual(draw_figures.number(row("none", 1, shape), "N"), length)

    def test_a_new_result_changes_the_table_and_the_caption(self):
        rows = [row(kind, 1.25) for kind in draw_figures.KINDS]
        documents = [document("attention", "2026-03-09", rows)]
        text, charts = draw_figures.cost_table(documents)
        self.assertIn("| ALiBi | `b` | 1.25 |", text)
        self.assertIn("Zen 5, 2 threads, 9 March 2026, medians of the rounds", text)
        self.assertIn("cost.svg", charts)

    def test_engines_have_a_line_for_each_cache_and_their_shares_of_reading(self):
        shape, rows = "N 4096, float16, 2 layers of 32 heads on 8 of 128", []
        for name, speed in (("none", 50.0), ("rope", 40.0), ("rope, rotated keys", 49.0)):
            for peer, other in (("ggml abc", 25.0), ("reading", 100.0)):
                rows.append({**row(name, speed / other, shape, "tokens/s", peer), "ours": speed,
                             "peer": other})
        rows.append({**row("reading", None, shape, "GB/s", None), "ours": 20.0})
        text, charts = draw_figures.engines([document("engines", "2026-03-09", rows)])
        self.assertIn("| float16 | 4096 | 50 | 40 | 49 | 25 | 50 % |", text)
        self.assertIn("ggml abc | of reading |", text)
        self.assertIn("reading alone reaches 20 GB/s", text)
        self.assertIn("up to 1.2 times as long", text)
        for name in ("Sextant", "ggml", "float16, 4096 keys"):
            self.assertIn(name, charts["engines.svg"])

    def test_blocks_are_beside_the_fastest_of_ggmls_graphs(self):
        rows = []
        for threads, ours in ((1, 0.5), (2, 0.25)):
            shape = f"N 1500, 8 heads of 128, {threads} threads"
            for way, times in (("slow", 5), ("fast", 4), ("fast, flash", 3)):
                for unit, value in (("s", ours), ("B", 64 * 2**20), ("B of buffers", 1.0)):
                    rows.append({**row("conformer", 1 / times, shape, unit, f"ggml 1.2, {way}"),
                                 "ours": value})
        text, _ = draw_figures.blocks([document("blocks", "2026-03-09", rows)])
        self.assertIn("| conformer | 1500 | 500 | 250 | 4 | 4 | 3 | 3 | 64 | 4 |", text)
        self.assertIn("ms, 2 threads | ggml: times, 1 thread |", text)
        self.assertIn("ggml 1.2; the fastest of its float32 graphs", text)

    def test_a_ring_has_a_line_for_each_method_and_what_is_sent(self):
        rows = [row(name, ratio, shape, "s", "one process")
                for shape in ("rope causal 4096x8x64", "rope full 4096x8x64")
                for name, ratio in (("forward", 0.98), ("backward", 1.04))]
        rows += [{**row(name, None, "step of a rank of 2, 4096x2x64", "bytes"), "ours": size}
                 for name, size in (("forward", 2**21), ("backward", 2**22))]
        text, _ = draw_figures.ring([document("ring", "2026-03-09", rows)])
        self.assertIn("| rope causal | 0.98 | 1.04 |", text)
        self.assertIn("4096 rows, 8 heads, 64 columns", text.replace("\n", " "))
        self.assertIn("sends 2 MiB forward and 4 MiB backward", text.replace("\n", " "))

    def test_workers_have_their_share_of_the_time_of_one(self):
        rows = [row("two workers", 0.55, "8 trainings of 800000 bytes", "s", "one worker")]
        text, _ = draw_figures.arms([document("arms", "2026-03-09", rows)])
        self.assertIn("took 0.55 of the time of one (8 trainings of 800000 bytes", text)

    def test_check_fails_on_a_stale_block_a_stale_chart_and_a_left_chart(self):
        def check(root):
            with contextlib.redirect_stderr(io.StringIO()):
                return draw_figures.main(["--check"], root)

        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write(root / "bench/results", document(
                "attention", "2026-03-09", [row(kind, 1.25) for kind in draw_figures.KINDS]))
            for page in draw_figures.PAGES:
                (root / page).parent.mkdir(parents=True, exist_ok=True)
                (root / page).write_text("Kept.\n", encoding="utf-8")
            page, chart = root / draw_figures.PAGES[0], root / "docs/figures/cost.svg"
            page.write_text("A\n<!-- figures:cost -->\nold\n<!-- /figures -->\nB\n", "utf-8")
            self.assertEqual(check(root), 1)
            self.assertEqual(draw_figures.main([], root), 0)
            self.assertEqual(check(root), 0)
            self.assertTrue(page.read_text("utf-8").startswith("A\n<!-- figures:cost -->\n| kind"))
            self.assertTrue(page.read_text("utf-8").endswith("\n<!-- /figures -->\nB\n"))
            chart.write_text("<svg/>", "utf-8")
            self.assertEqual(check(root), 1)
            draw_figures.main([], root)
            (root / "docs/figures/left.svg").write_text("<svg/>", "utf-8")
            self.assertEqual(check(root), 1)
            draw_figures.main([], root)
            self.assertFalse((root / "docs/figures/left.svg").exists())

    def test_charts_are_xml_and_escape_their_texts(self):
        for chart in (svg_chart.ranges("a < b", ["x & y"], [("k", {"x & y": (1, 2)})], (1, 2), str),
                      svg_chart.lines("t", {"s": [(1, 1), (2, 2)]}, ((1, 2), (1, 2)), ("N", True),
                                      (str, str))):
            self.assertTrue(xml.etree.ElementTree.fromstring(chart).tag.endswith("svg"))

    def test_every_stored_result_has_the_fields_of_the_contract(self):
        for path in (ROOT / "bench/results").glob("*/*.json"):
            each = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(path.name, f"{each['date']}-{each['bench']}.json")
            self.assertEqual(path.parent.name, each["machine"])
            self.assertLessEqual({"schema", "commit", "threads", "command"}, set(each))
            for one in each["rows"]:
                self.assertEqual(set(one), FIELDS, path)


class ResultRowsTest(unittest.TestCase):
    def test_attention_is_summed_by_round_and_beside_the_peak_of_the_round(self):
        def side(*seconds):
            return {"seconds": list(seconds), "least": min(seconds), "median": seconds[0]}

        common = {"kind": "full", "length": 64, "head_dim": 64}
        passes = [{**common, "pass": "forward", "operations": 2e9, "ours": side(2, 4, 8),
                   "multiplying": side(1, 1, 2)},
                  {**common, "pass": "backward", "operations": 4e9, "ours": side(2, 4, 8),
                   "multiplying": side(2, 2, 2)}]
        forward, both = result_rows.rows("attention", {"attention": {
            "measured": passes, "heads": 8, "backend": "cpu"}})
        self.assertEqual(set(forward), FIELDS)
        self.assertEqual((forward["ours"], forward["ratio"], forward["spread"]), (0.5, 0.25, 4))
        self.assertEqual((both["ours"], both["ratio"]), (0.75, 0.375))
        self.assertEqual(both["shape"], "with backward, N 64, D 64, H 8")

    def test_a_peer_that_takes_twice_as_long_has_the_ratio_two(self):
        measured = [{"method": "none", "length": 64, "pass": "forward", "by": by, "seconds": [s]}
                    for by, s in (("sextant", 1.0), ("sdpa", 2.0))]
        found = result_rows.rows("peers-64", {"peers-64": {"torch": "2.15.0",
                                                           "measured": measured}})
        self.assertEqual([each["ratio"] for each in found], [2.0])
        self.assertEqual(found[0]["peer_version"], "PyTorch 2.15.0 flash attention")


if __name__ == "__main__":
    unittest.main()
