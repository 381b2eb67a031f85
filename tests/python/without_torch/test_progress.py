"""A build by pip passes the output of Ninja on and writes its progress to the terminal."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# scikit-build-core is replaced by a module without hooks.
CODE = """
import subprocess, sys, types
sys.dont_write_bytecode = True
build = types.ModuleType("scikit_build_core.build")
sys.modules["scikit_build_core"] = types.ModuleType("scikit_build_core")
sys.modules["scikit_build_core"].build = sys.modules["scikit_build_core.build"] = build
sys.path.insert(0, sys.argv[1])
import sextant_build
with sextant_build.shown_progress(sys.argv[2]):
    print("first")
    for n in range(41):
        subprocess.run(["echo", f"[{n}/40] Building"], check=True)
print("last")
"""


class Progress(unittest.TestCase):
    def built(self, terminal):
        backend = ROOT / "python" / "build_backend"
        done = subprocess.run([sys.executable, "-c", CODE, backend, terminal], capture_output=True,
                              text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(),
                         ["first", *(f"[{n}/40] Building" for n in range(41)), "last"])

    def test_one_line_for_each_tenth(self):
        with tempfile.TemporaryDirectory() as folder:
            terminal = pathlib.Path(folder, "terminal")
            self.built(terminal)
            lines = terminal.read_text().split("\n")
            shown = [line for line in lines if line]
            self.assertEqual(len(shown), 10)
            self.assertRegex(shown[0], r"^sextant: built 4 of 40, \d+ s$")
            self.assertRegex(shown[-1], r"^sextant: built 40 of 40, \d+ s$")

    def test_without_a_terminal_only_the_output_is_there(self):
        self.built("/no/such/terminal")


if __name__ == "__main__":
    unittest.main()
