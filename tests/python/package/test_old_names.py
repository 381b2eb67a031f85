"""Old names work until the next version, each with a warning of its name now."""

import subprocess
import sys
import unittest
import warnings

import sextant
import torch
from sextant import tables


class OldNames(unittest.TestCase):
    def test_tables(self):
        for old, now, arguments in (("rope_speeds", tables.rope_frequencies, (8,)),
                                    ("stretched_speeds", tables.stretched_frequencies, (8,))):
            with self.assertWarnsRegex(DeprecationWarning, f"{old}: its name is {now.__name__} now"):
                function = getattr(tables, old)
            self.assertIs(function, now)
            function(*arguments)
        with self.assertWarns(DeprecationWarning):
            from sextant.tables import config_speeds
        self.assertIs(config_speeds, tables.config_frequencies)
        with self.assertRaisesRegex(AttributeError, "no attribute 'rope_rates'"):
            tables.rope_rates  # pylint: disable=pointless-statement

    def test_the_hook_of_an_encoding(self):
        with self.assertWarnsRegex(DeprecationWarning, "Old.speeds: its name is frequencies now"):
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
        # torch warns once in a process, and of nothing that a compiler's test has seen before.
        program = """if True:
            import warnings, sextant, torch
            q, k, v = torch.rand(3, 1, 2, 5, 8)
            def run(**options):
                return sextant.attention(q, k, v, "rope", options=options)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                old = [run(float32_speeds=flag) for flag in (True, False)]
            said = [str(w.message) for w in caught if "its name is" in str(w.message)]
            assert len(said) == 1, caught
            assert "rope: float32_speeds: its name is float32_frequencies now" in said[0], said
            new = [run(float32_frequencies=flag) for flag in (True, False)]
            assert all(map(torch.equal, old, new))
            try:
                run(float32_frequencies=True, float32_speeds=True)
            except RuntimeError as error:
                assert "expected only float32_frequencies, its name now" in str(error), error
            else:
                raise AssertionError("both names are taken")
        """
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
