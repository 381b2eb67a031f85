"""The reading comes from the library if there is one, else from the command."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor import reading  # noqa: E402
from sextant.doctor.reading import ReadingError, read, read_fields  # noqa: E402

LLAMA = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
         "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 10000.0}
LIBRARY = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int sextant_explain_json(const char *config, size_t bytes, int64_t length, char **json) {
  if (bytes == 3 && memcmp(config, "bad", 3) == 0) return 1;
  *json = strdup(length == 7 ? "{\"schema\": 2, \"dialect\": \"seven\", \"settings\": []}"
                             : "{\"schema\": 1}");
  return 0;
}
const char *sextant_error(void) { return "config.json: rope_theta: expected a number"; }
void sextant_free(void *text) { free(text); }
"""


def uncached(test):
    reading._library.cache_clear()  # pylint: disable=protected-access
    test.addCleanup(reading._library.cache_clear)  # pylint: disable=protected-access


@unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
class Command(unittest.TestCase):
    """The reading of the command."""

    def setUp(self):
        uncached(self)

    def test_values(self):
        answer = read_fields(LLAMA)
        group = answer.group_of(1, None)
        self.assertEqual(answer.dialect, "Hugging Face config.json")
        self.assertEqual((group.pairing, group.rotated_channels), ("half-split", (0, 63)))
        self.assertEqual(group.frequencies[0], 1.0)
        self.assertAlmostEqual(group.frequencies[16], 0.01, places=12)
        self.assertFalse(answer.depends_on_length)

    def test_groups_by_layer(self):
        answer = read_fields({**LLAMA, "model_type": "smollm3", "num_hidden_layers": 8,
                              "no_rope_layers": [1, 1, 1, 0] * 2})
        self.assertEqual([answer.group_of(n, None).rotates for n in (2, 3, 4, 7)],
                         [True, False, True, False])

    def test_a_refusal_has_the_message_of_explain(self):
        with self.assertRaisesRegex(ReadingError, "config.json: .*rope_theta"):
            read_fields({**LLAMA, "rope_theta": "large"})

    def test_a_missing_command_is_named(self):
        with mock.patch.dict(os.environ, {"SEXTANT_COMMAND": "/nowhere/sextant"}):
            with self.assertRaisesRegex(ReadingError, "expected the command .* /nowhere/sextant"):
                read_fields(LLAMA)


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Library(unittest.TestCase):
    """A stand-in for the library, called through ctypes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, library = (pathlib.Path(folder.name, n) for n in ("lib.c", "lib.so"))
        source.write_text(LIBRARY)
        self.config = str(pathlib.Path(folder.name, "config.json"))
        pathlib.Path(self.config).write_text("{}")
        subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        patch = mock.patch.dict(os.environ, {"SEXTANT_CONFIG_LIBRARY": str(library),
                                             "SEXTANT_COMMAND": "/nowhere"})
        patch.start()
        self.addCleanup(patch.stop)
        uncached(self)

    def test_it_is_preferred(self):
        self.assertEqual(read(self.config, 7).dialect, "seven")

    def test_its_message_is_the_error(self):
        pathlib.Path(self.config).write_text("bad")
        with self.assertRaisesRegex(ReadingError, "^config.json: rope_theta: expected a number$"):
            read(self.config)

    def test_another_schema_is_refused(self):
        with self.assertRaisesRegex(ReadingError, "schema: expected 2, but got 1"):
            read(self.config)

    def test_another_library_is_refused(self):
        with mock.patch.dict(os.environ, {"SEXTANT_CONFIG_LIBRARY": "libc.so.6"}):
            with self.assertRaisesRegex(ReadingError, "libc.so.6: expected the library sextant_c"):
                read(self.config)


if __name__ == "__main__":
    unittest.main()
