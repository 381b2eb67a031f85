"""Fake tensors (torch.compile) in calls whose data is on a device and whose plan is on the CPU."""

from typing import Any

import torch

# torch has no public function for this: it refuses fake tensors on two devices before it asks an
# operator for its shapes.
try:
    from torch._subclasses.fake_impls import register_op_impl
    from torch.utils._pytree import tree_flatten, tree_map
except ImportError:  # this torch has no compiler, or its functions have other names
    register_op_impl = None  # type: ignore[assignment]

_NAMES = ("attend", "attend_backward", "method_attend", "method_attend_backward",
          "method_attend_with_lse", "method_attend_with_lse_backward", "method_embed",
          "method_embed_backward", "rotate")


def _on_one_device(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """The results of the meta kernel, on the device of the data."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    devices = {x.device for x in tensors} - {torch.device("cpu")}
    if len(devices) != 1 or all(x.device in devices for x in tensors):
        return NotImplemented
    device, = devices
    with fake_mode:
        args, kwargs = tree_map(
            lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x, (args, kwargs))
        return tree_map(
            lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)
            if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))


def register() -> None:
    if register_op_impl is not None:
        for name in _NAMES:
            register_op_impl(getattr(torch.ops.sextant, name).default)(_on_one_device)
