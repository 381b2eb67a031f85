"""Errors of sextant.attention name what is wrong."""

import unittest

import sextant

from made_methods import inputs


class Errors(unittest.TestCase):
    def message(self, *arguments, **options):
        with self.assertRaises(RuntimeError) as caught:
            sextant.attention(*arguments, **options)
        return str(caught.exception)

    def test_name_what_is_wrong(self):
        q, k, v = inputs()
        self.assertIn("alibi", self.message(q, k, v, method="alibbi"))
        self.assertIn("slant", self.message(q, k, v, method="alibi", slant=2))
        self.assertIn("k: expected 4 columns", self.message(q, k[..., :3], v))
        self.assertIn("parameters", self.message(q, k, v, method="shaw"))
        self.assertIn("k: expected a tensor [batch, heads, rows, columns], but got [2, 6, 4]",
                      self.message(q, k[:, 0], v))
        self.assertIn("q: expected a tensor", self.message([[1.0]], k, v))


if __name__ == "__main__":
    unittest.main()
