"""Text for terminals, atomic writes, and the signals that stop a measurement."""

import contextlib
import io
import os
import pathlib
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True

from sextant._printable import print_error, printable, printable_lines  # noqa: E402
from sextant._write_file import write_file  # noqa: E402

FOREIGN = "a\x1b[2J\nsextant: done \x9b\u202e"


class Printable(unittest.TestCase):
    def test_it_is_that_of_cpp(self):
        self.assertEqual(printable("a\x1b[31m\r\n\t\x7f\x9b\u202e\u2066"),
                         "a\\u001b[31m\\r\\n\\t\\u007f\\u009b\\u202e\\u2066")
        self.assertEqual(printable("Größe, 位置编码, עברית 🧭"), "Größe, 位置编码, עברית 🧭")
        self.assertEqual(printable(b"a\xff".decode(errors="surrogateescape")), "a\ufffd")
        self.assertEqual(printable_lines("a\tb\n\r\x1b"), "a\tb\n\\r\\u001b")
        every = "".join(chr(n) for n in range(0x110000) if not 0xd800 <= n < 0xe000)
        self.assertEqual(len(set(every) - set(printable(every))), 32 + 33 + 7 + 4)

    def test_no_line_of_an_error_passes_for_another(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            print_error(FOREIGN)
        self.assertEqual(err.getvalue(),
                         "sextant: a\\u001b[2J\n  sextant: done \\u009b\\u202e\n")


class WriteFile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name, "file")

    def test_a_file_that_cannot_be_replaced_stays(self):
        self.path.write_text("before")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))  # Python ignores SIGXFSZ
        try:
            with self.assertRaises(OSError):
                write_file(self.path, "after")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        self.assertEqual(self.path.read_text(), "before")
        self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_modes_links_and_pipes_stay(self):
        write_file(self.path, "before")
        self.path.chmod(0o600)
        link = self.path.with_name("link")
        link.symlink_to("file")
        write_file(link, "after")
        self.assertEqual(self.path.read_text(), "after")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertTrue(link.is_symlink())
        pipe = self.path.with_name("pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write_file(pipe, "text")
        self.assertEqual(os.read(reader, 8), b"text")
        os.close(reader)


class Signals(unittest.TestCase):
    def stopped(self, number, before=""):
        code = (f"import signal, os; {before}\n"
                "from sextant.measure.arm import Progress\n"
                "progress = Progress(1, 0); progress.catch_signals()\n"
                f"os.kill(os.getpid(), {int(number)}); print(progress.stop_requested())")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        return done.stdout.strip() == "True"

    def test_sigterm_and_sighup_stop_after_the_present_record(self):
        self.assertTrue(self.stopped(signal.SIGTERM))
        self.assertTrue(self.stopped(signal.SIGHUP))
        ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
        self.assertFalse(self.stopped(signal.SIGHUP, ignored))


if __name__ == "__main__":
    unittest.main()
