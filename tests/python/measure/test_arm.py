"""The folder of an arm, whose files are read with bounds."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from sextant._files import read_bytes  # noqa: E402
from sextant.measure.arm import Arm  # noqa: E402
from sextant.measure.errors import MeasureError  # noqa: E402


def make(kind, path):
    """Makes what is no file."""
    path.unlink(missing_ok=True)
    if kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.mkdir()


class Folder(unittest.TestCase):
    """arm.json and records.jsonl of one arm."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "arm.json").write_text(json.dumps({"measure": "losses"}))
        (self.folder / "records.jsonl").write_text('{"block": 0}\n{"block": 1}\n{"bl')

    def test_records_end_at_the_last_whole_line(self):
        arm = Arm(self.folder)
        self.assertEqual(arm.records(), [{"block": 0}, {"block": 1}])
        arm.append({"block": 2})
        self.assertEqual(len(Arm(self.folder).records()), 3)

    def test_what_is_no_file_is_named(self):
        for name in ("arm.json", "records.jsonl"):
            kept = (self.folder / name).read_bytes()
            for kind in ("endless", "pipe", "loop", "folder"):
                path = self.folder / name
                make(kind, path)
                with self.subTest(name=name, kind=kind):
                    with self.assertRaisesRegex(MeasureError, str(path)):
                        Arm(self.folder)
                path.rmdir() if kind == "folder" else path.unlink()
            (self.folder / name).write_bytes(kept)

    def test_what_is_no_object_is_named(self):
        for text in ("", "[1]", "{", "[" * 100_000, "3"):
            for name, line in (("arm.json", text), ("records.jsonl", text + "\n")):
                kept = (self.folder / name).read_bytes()
                (self.folder / name).write_text(line)
                with self.subTest(name=name, text=text[:9]):
                    with self.assertRaisesRegex(MeasureError, f"{self.folder / name}: expected"):
                        Arm(self.folder)
                (self.folder / name).write_bytes(kept)

    def test_a_size_is_bounded(self):
        path = self.folder / "large"
        path.write_bytes(b"12345")
        self.assertEqual(read_bytes(path, 5), b"12345")
        os.truncate(path, 1 << 42)
        with self.assertRaisesRegex(OSError, "expected at most 5 bytes, but got 4398046511104"):
            read_bytes(path, 5)


if __name__ == "__main__":
    unittest.main()
