"""Configurations of released models are not doubtful, but for those that are."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: E402 pylint: disable=wrong-import-position

from sextant.doctor.doubts import doubts  # noqa: E402
from sextant.doctor.reading import read_fields  # noqa: E402

RELEASED = package.ROOT / "tests/rope_config/released"
# Their stretch reaches layers with a window or chunk only, which see no further than in training.
IDLE = {"exaone-4.0-32b", "exaone-4.5-33b", "llama-4-scout-17b-16e"}


@unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
class Released(unittest.TestCase):
    """The files of tests/rope_config/released."""

    def test_doubts(self):
        doubtful = {}
        files = sorted(pathlib.Path(RELEASED).glob("*.json"))
        self.assertGreater(len(files), 50)
        for path in files:
            fields = json.loads(path.read_text(encoding="utf-8"))["config"]
            inner = next((fields[name] for name in ("text_config", "llm_config")
                          if isinstance(fields.get(name), dict)), fields)
            found = doubts(read_fields(fields), inner.get("max_position_embeddings"))
            if found:
                doubtful[path.stem] = found[0].got
        self.assertEqual(set(doubtful), IDLE, doubtful)


if __name__ == "__main__":
    unittest.main()
