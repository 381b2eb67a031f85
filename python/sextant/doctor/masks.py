"""The windows and chunks of a model's attention masks, without building a mask.

transformers describes a mask by a function of (batch, head, query, key) and passes it to the
function that is registered for an attention implementation. The one registered here evaluates it
for two far queries and all keys before them, and returns a mask that holds only the number of the
result, which the attention function reads again. Windows up to 131072 keys are seen with a run of
a few tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

FAR = (1 << 17) + 77  # the position of a query that sees every window
CODE = 4096.0  # a mask of doctor's holds CODE + the number of its result


@dataclass(frozen=True)
class Seen:
    """Keys that a query sees. window: their number, its own included; chunk: the size of chunks;
    None: no limit."""

    window: int | None
    chunk: int | None


def seen_by(mask_function: Callable) -> Seen | None:
    """Evaluates a mask function. None if it is neither causal nor a window nor chunks."""
    import torch
    zero = torch.tensor(0)

    def visible(query: int) -> Any:
        keys = torch.arange(query + 3)
        value = mask_function(zero, zero, torch.tensor(query), keys)
        return torch.broadcast_to(torch.as_tensor(value, dtype=torch.bool), keys.shape)

    first = [int(visible(q).nonzero()[0]) for q in (FAR, FAR + 1)]
    if first == [0, 0]:
        return Seen(None, None)
    if first[1] == first[0] + 1:
        return Seen(FAR - first[0] + 1, None)
    if first[1] == first[0]:  # both in the chunk that begins there; the chunk before gives the size
        return Seen(None, first[0] - int(visible(first[0] - 1).nonzero()[0]))
    return None


class MaskRecords:
    """Registered as the mask function of doctor's attention implementation."""

    def __init__(self) -> None:
        self.seen: list[Seen | None] = []

    def __call__(self, *args: Any, **named: Any) -> Any:
        import torch
        function = named.get("mask_function")
        try:
            seen = seen_by(function) if function is not None else None
        except Exception:  # pylint: disable=broad-except
            seen = None  # a function of other arguments; the window is then not judged
        self.seen.append(seen)
        batch = named.get("batch_size", args[0] if args else 1)
        keys = named.get("kv_length", 1)
        queries = named.get("q_length")
        if queries is None:
            places = named.get("cache_position")
            queries = len(places) if places is not None else keys
        device = named.get("device") or "cpu"
        return torch.full((int(batch), 1, int(queries), int(keys)),
                          CODE + len(self.seen) - 1, device=device)

    def of(self, mask: Any) -> Seen | None:
        """The result that a mask stands for; None if the mask is not doctor's."""
        if not hasattr(mask, "flatten") or mask.numel() == 0 or not mask.is_floating_point():
            return None
        code = float(mask.flatten()[0]) - CODE
        return self.seen[int(code)] if code.is_integer() and 0 <= code < len(self.seen) else None
