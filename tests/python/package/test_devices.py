"""CUDA tensors, as far as a machine without a GPU shows them: kernels, shapes and devices."""

import unittest

import torch

import sextant

from made_methods import inputs, layer_input, make

try:
    from torch._subclasses import FakeTensorMode
except ImportError:
    FakeTensorMode = None

FAKES = FakeTensorMode is not None and hasattr(torch, "compile")


class Devices(unittest.TestCase):
    def test_every_operator_has_a_cuda_kernel(self):
        sextant.load()
        for name in ("attend", "attend_backward", "method_embed", "method_embed_backward",
                     "method_attend", "method_attend_backward", "method_attend_with_lse",
                     "method_attend_with_lse_backward", "rotate"):
            for key in ("CPU", "CUDA", "Meta"):
                with self.subTest(name, key=key):
                    self.assertTrue(torch._C._dispatch_has_kernel_for_dispatch_key(
                        f"sextant::{name}", key))

    # Autograd asks for streams of the device, so these tensors need no gradients.
    @unittest.skipUnless(FAKES, "this torch fakes no CUDA tensors")
    def test_results_are_on_the_device_of_q(self):
        for name in sextant.methods():
            method = make(name)
            with self.subTest(name), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
                parameters = [torch.empty(p.shape, device="cuda")
                              for p in method.tensors()]
                q, k, v = (torch.empty(x.shape, device="cuda", dtype=torch.bfloat16)
                           for x in inputs())
                x = torch.empty(layer_input().shape, device="cuda")
                named = method.name, method.shape, method.options, parameters
                keys = torch.cat((k, torch.ops.sextant.method_key_columns(*named, x).to(k)), 3)
                queries = torch.cat((q, torch.ops.sextant.method_query_columns(*named, x).to(q)), 3)
                out, lse = torch.ops.sextant.method_attend_with_lse(*named, queries, keys, v)
                self.assertEqual((out.shape, out.dtype, out.device.type),
                                 (q.shape, torch.bfloat16, "cuda"))
                self.assertEqual((lse.shape, lse.dtype, lse.device.type),
                                 (q.shape[:3], torch.float32, "cuda"))

    @unittest.skipUnless(FAKES, "this torch fakes no CUDA tensors")
    def test_an_encoding_calls_its_hooks_on_the_device_of_q(self):
        class Own(sextant.Encoding):
            def bias(self, distances):
                return -distances.abs().sqrt()

            def query_scale(self, q, positions):
                return positions.view(1, 1, -1) + 1

            def key_bias(self, k, positions):
                return positions.view(1, 1, -1)

        with FakeTensorMode(allow_non_fake_inputs=True):
            q, k, v = (torch.empty(x.shape, device="cuda") for x in inputs())
            encoding = Own(heads=q.size(1), key_heads=k.size(1))
            try:
                out = encoding(q, k, v)
            except RuntimeError as error:
                if "no CUDA device" not in str(error):
                    raise
                self.skipTest("this torch needs a GPU to fake CUDA tensors")
        self.assertEqual((out.shape, out.device.type), (q.shape, "cuda"))


if __name__ == "__main__":
    unittest.main()
