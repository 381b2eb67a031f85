"""The reading of a configuration is the command's."""

import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor.reading import Reading, ReadingError, read, read_fields  # noqa: E402

LLAMA = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
         "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 10000.0}


@unittest.skipUnless(os.environ.get("SEXTANT_COMMAND"), "SEXTANT_COMMAND is not set")
class Command(unittest.TestCase):
    """The reading of the command."""

    def test_values(self):
        answer = read_fields(LLAMA)
        group = answer.group_of(1, None)
        self.assertEqual(answer.dialect, "Hugging Face config.json")
        self.assertEqual((group.pairing, group.rotated_channels), ("half-split", [0, 63]))
        self.assertEqual(group.pairs[0]["stretched"], 1.0)
        self.assertAlmostEqual(group.pairs[16]["stretched"], 0.01, places=12)
        self.assertFalse(answer.depends_on_length)
        self.assertEqual(group.means(), read_fields({**LLAMA, "vocab_size": 8}).groups[0].means())
        self.assertNotEqual(group.means(),
                            read_fields({**LLAMA, "rope_theta": 1e6}).groups[0].means())

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

    def test_a_missing_file_is_named(self):
        with self.assertRaisesRegex(ReadingError, "/nowhere/config.json: No such file"):
            read("/nowhere/config.json")


class Schema(unittest.TestCase):
    """The answer of another version."""

    def test_another_schema_is_refused(self):
        with self.assertRaisesRegex(ReadingError, "schema: expected 3, but got 2"):
            Reading.of({"schema": 2}, "{}")


if __name__ == "__main__":
    unittest.main()
