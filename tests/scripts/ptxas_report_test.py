"""Tests of tests/ptxas_report.py: registers by architecture, and spills by function."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
import ptxas_report  # noqa: E402


def output(architecture, name, registers, stores, loads):
    return [f"ptxas info    : Compiling entry function '{name}' for '{architecture}'",
            f"ptxas info    : Function properties for {name}",
            f"    0 bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads",
            f"ptxas info    : Used {registers} registers, used 1 barriers, 656 bytes cmem[0]"]


class PtxasReport(unittest.TestCase):
    def test_counts_registers_by_architecture(self):
        lines = output("sm_80", "_Z1av", 40, 0, 0) + output("sm_90", "_Z1bv", 255, 0, 0)
        registers, spills = ptxas_report.read(lines)
        self.assertEqual(dict(registers), {"sm_80": [40], "sm_90": [255]})
        self.assertEqual(spills, [])

    def test_finds_spills_in_kernels_and_in_functions_that_they_call(self):
        lines = output("sm_80", "_Z1av", 40, 0, 0) + output("sm_90", "_Z1bv", 255, 8, 4)
        lines += ["ptxas info    : Function properties for _Z4slowv",
                  "    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads"]
        self.assertEqual(ptxas_report.read(lines)[1],
                         [("sm_90", "_Z1bv", 12), ("sm_90", "_Z4slowv", 8)])


if __name__ == "__main__":
    unittest.main()
