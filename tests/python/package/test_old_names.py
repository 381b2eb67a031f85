"""Old names work until the next version, each with a warning of its name now."""

import unittest
import warnings

import sextant
import torch
from sextant import tables


class OldNames(unittest.TestCase):
    def test_tables(self):
        for old, now, arguments in (("rope_speeds", tables.rope_frequencies, (8,)),
                                    ("stretched_speeds", tables.stretched_frequencies, (8,))):
            warning = f"{old}: its name is {now.__name__} now"
            with self.assertWarnsRegex(FutureWarning, warning):
                function = getattr(tables, old)
            self.assertIs(function, now)
            function(*arguments)
        with self.assertWarns(FutureWarning):
            from sextant.tables import config_speeds
        self.assertIs(config_speeds, tables.config_frequencies)
        with self.assertRaisesRegex(AttributeError, "no attribute 'rope_rates'"):
            tables.rope_rates  # pylint: disable=pointless-statement

    def test_the_hook_of_an_encoding(self):
        with self.assertWarnsRegex(FutureWarning, "Old.speeds: its name is frequencies now"):
            class Old(sextant.Encoding):
                def speeds(self):
                    return tables.rope_frequencies(8)

        class New(sextant.Encoding):
            def frequencies(self):
                return tables.rope_frequencies(8)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            class Inherits(Old):
                pass
        q, k, v = torch.rand(3, 1, 2, 5, 8, dtype=torch.float64)
        expected = New(heads=2)(q, k, v, causal=True)
        for encoding in (Old, Inherits):
            self.assertTrue(torch.equal(encoding(heads=2)(q, k, v, causal=True), expected))

    def test_the_option_of_a_method(self):
        q, k, v = torch.rand(3, 1, 2, 5, 8)
        message = "float32_speeds: its name is float32_frequencies now"
        ways = (lambda **o: sextant.attention(q, k, v, "rope", options=o),
                lambda **o: sextant.Method("rope", heads=2, head_dim=8, **o)(q, k, v),
                lambda **o: sextant.rotate(q, torch.arange(5), **o))
        for way in ways:
            for flag in (True, False):
                with self.assertWarnsRegex(FutureWarning, message):
                    old = way(float32_speeds=flag)
                self.assertTrue(torch.equal(old, way(float32_frequencies=flag)))
            with self.assertRaisesRegex(RuntimeError, "expected only float32_frequencies"):
                way(float32_speeds=True, float32_frequencies=True)
        with self.assertRaisesRegex(RuntimeError, "float32_"):
            sextant.attention(q, k, v, "alibi", options={"float32_speeds": True})
        text = '{"float32_speeds": true}'  # as in files; the operators warn, too
        specs = [torch.ops.sextant.method_parameters("rope", [1, 2, 2, 8, 16, 16], one)[0]
                 for one in (text, text.replace("speeds", "frequencies"))]
        self.assertEqual(*specs)


if __name__ == "__main__":
    unittest.main()
