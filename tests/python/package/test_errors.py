"""Errors of sextant.attention name what is wrong, and have the types that torch's have."""

import importlib
import unittest

import torch

import sextant

from made_methods import inputs


class Errors(unittest.TestCase):
    def message(self, kind, *arguments, **options):
        with self.assertRaises(kind) as caught:
            sextant.attention(*arguments, **options)
        self.assertIsInstance(caught.exception, RuntimeError)  # the type of earlier versions
        self.assertEqual(isinstance(caught.exception, sextant.Error), kind is not RuntimeError)
        return str(caught.exception)

    def test_name_what_is_wrong(self):
        q, k, v = inputs()
        self.assertIn("alibi", self.message(ValueError, q, k, v, method="alibbi"))
        self.assertIn("slant", self.message(TypeError, q, k, v, method="alibi", slant=2))
        self.assertIn("k: expected 4 columns", self.message(RuntimeError, q, k[..., :3], v))
        self.assertIn("parameters", self.message(RuntimeError, q, k, v, method="shaw"))
        self.assertIn("k: expected a tensor [batch, heads, rows, columns], but got [2, 6, 4]",
                      self.message(ValueError, q, k[:, 0], v))
        self.assertIn("q: expected a tensor", self.message(TypeError, [[1.0]], k, v))

    def test_types_of_values(self):
        q, k, v = inputs()
        for kind, arguments in (
                (TypeError, {"causal": "no"}), (TypeError, {"cache": 3}),
                (TypeError, {"method": 3}),
                (TypeError, {"dropout_p": "much"}), (ValueError, {"dropout_p": 1.0}),
                (ValueError, {"softcap": -1.0}), (TypeError, {"window": "wide"}),
                (ValueError, {"window": 0}), (ValueError, {"sequences": [0]}),
                (TypeError, {"packed_queries": ["a"]}), (TypeError, {"attn_mask": None})):
            with self.subTest(**arguments):
                self.message(kind, q, k, v, **arguments)
        with self.assertRaises(ValueError):
            sextant.Encoding(heads=4, key_heads=3)
        with self.assertRaises(ValueError):
            sextant.tables.deberta_rows(torch.arange(3), flavour="other")

    def test_one_base_of_all(self):
        bases = {"sextant.doctor.subject.SubjectError": Exception,
                 "sextant.doctor.reading.ReadingError": Exception,
                 "sextant.doctor.probe.ProbeError": Exception,
                 "sextant.conformance.case.NotCovered": Exception,
                 "sextant.measure.errors.MeasureError": RuntimeError,
                 "sextant.measure.errors.Stopped": Exception,
                 "sextant.transformers.errors.ModelError": RuntimeError}
        for name, base in bases.items():
            module, _, kind = name.rpartition(".")
            if ".transformers." in name:
                try:
                    importlib.import_module("transformers")
                except ImportError:
                    continue
            with self.subTest(name):
                found = getattr(importlib.import_module(module), kind)
                self.assertTrue(issubclass(found, sextant.Error) and issubclass(found, base))


if __name__ == "__main__":
    unittest.main()
