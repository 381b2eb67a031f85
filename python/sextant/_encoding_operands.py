"""The operands of attention from the hooks of an encoding of one's own.

Each hook is called once, with distances, positions and tensors of one call. Its result is checked,
with an error that names the hook and the sizes, and brought to the form of the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from sextant._call import compiling
from sextant._errors import InvalidType, InvalidValue
from sextant._rows import Rows

if TYPE_CHECKING:
    from sextant.encoding import Encoding


class EncodingOperands:
    """Calls the hooks of an encoding and checks their results."""

    def __init__(self, encoding: Encoding, q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> None:
        self.encoding, self.rows, self.device = encoding, rows, q.device
        self.wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        self.name = type(encoding).__name__
        self.sizes = {"batch": q.size(0), "heads": q.size(1), "key_heads": k.size(1)}
        self.named: dict[str, Tensor] = {}
        self._tables(q.size(3), v.size(3))
        self._sink()
        factor = self._call("query_scale", q, self._of_device(rows.query_positions()))
        q, k = self._rotations(q, k)
        if factor is not None:
            factor = self._checked("query_scale", factor, "batch", "heads", queries=q.size(2))
            q = q.to(self.wide) * factor.to(self.wide).unsqueeze(3)
        self.named.update(q=q, k=k, v=v)

    def _call(self, hook: str, *arguments: Tensor) -> Any:
        function = getattr(self.encoding, hook)
        # Dynamo of torch 2.8 knows no vars().
        if not compiling() and (not callable(function) or hook in vars(self.encoding)):
            raise InvalidType(f"{self.name}.{hook}: expected a method of the class, but it is an "
                              f"attribute of type {type(function).__name__}, which needs another "
                              "name")
        return function(*arguments)

    def _of_device(self, x: Tensor) -> Tensor:
        return x.to(self.device, self.wide)

    def _refuse(self, hook: str, expected: object, got: object) -> NoReturn:
        raise InvalidValue(f"{self.name}.{hook}: expected {expected}, but got {got}")

    def _checked(self, hook: str, value: Any, *shared: str, **exact: int | None) -> Tensor:
        """value with all its sizes, those in `shared` 1 or full. An exact size of None is free."""
        expected: list[tuple[str, int | None, bool]] = [
            (name, self.sizes[name], True) for name in shared]
        expected += [(name, size, False) for name, size in exact.items()]
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            self._refuse(hook, "a tensor of floating point numbers",
                         value.dtype if isinstance(value, torch.Tensor) else type(value).__name__)
        whole = value
        while whole.dim() < len(expected):
            whole = whole.unsqueeze(0)
        fits = whole.dim() == len(expected) and all(
            size is None or got == size or (is_shared and got == 1)
            for got, (_, size, is_shared) in zip(whole.shape, expected))
        if not fits:
            sizes = ", ".join(
                name if size is None else ("1 or " if is_shared else "") + f"{name}={size}"
                for name, size, is_shared in expected)
            self._refuse(hook, f"[{sizes}]", list(value.shape))
        if value.device != self.device:
            self._refuse(hook, f"{self.device}, as q", value.device)
        return whole

    def _tables(self, columns: int, value_columns: int) -> None:
        distances = self._of_device(self.rows.distances(self.wide))
        for hook in ("bias", "weight", "on_query", "on_key", "on_value"):
            value = self._call(hook, distances)
            if value is None:
                continue
            exact: dict[str, int | None] = {"distances": distances.numel()}
            if isinstance(value, tuple):
                value, row_at = value if len(value) == 2 else (None, None)
                exact = {"rows": None}
                if not isinstance(row_at, torch.Tensor) or row_at.dtype not in (
                        torch.int32, torch.int64) or row_at.shape != distances.shape:
                    got = (f"{row_at.dtype} {list(row_at.shape)}"
                           if isinstance(row_at, torch.Tensor) else type(row_at).__name__)
                    self._refuse(hook, "a pair of a table and int64 [distances="
                                 f"{distances.numel()}], the row of each distance", got)
                # The operator has int32; it refuses rows that a table lacks also where values are
                # traced.
                if not compiling() and row_at.numel() and int(row_at.abs().max()) >= 2**31:
                    self._refuse(hook, "rows of the table", int(row_at.abs().max()))
                self.named[hook + "_rows"] = row_at.clamp(-2**31, 2**31 - 1).to("cpu", torch.int32)
            if hook == "on_value":
                exact["columns"] = value_columns
            elif hook.startswith("on_"):
                exact["columns"] = None
            value = self._checked(hook, value, "heads", **exact)
            if hook in ("on_query", "on_key") and value.size(2) > columns:
                self._refuse(hook, f"at most {columns} columns, as q", value.size(2))
            self.named[hook] = value.to(self.wide)

    def _sink(self) -> None:
        sink = self._call("sink")
        if sink is not None:
            sink = self._checked("sink", sink, heads=self.sizes["heads"])
            self.named["sink"] = sink.to(self.wide)

    def _by_sequence(self, hook: str, k: Tensor, *shared: str,
                     **exact: int | None) -> list[Tensor] | None:
        """The results of a hook that reads keys, one for each sequence; None if it is not
        overridden."""
        results = []
        positions = self._of_device(self.rows.key_positions())
        for f in self.rows.frames:
            part = k[:, :, f.key_row:f.key_row + f.keys]
            value = self._call(hook, part, positions[f.key_row:f.key_row + f.keys])
            if value is None:
                return None
            results.append(self._checked(hook, value, *shared, keys=f.keys, **exact))
        return results

    def _of_rows(self, results: list[Tensor], dim: int, starts: list[int],
                 count: int) -> Tensor:
        """The results of sequences side by side, with zeros between them."""
        sizes = [1, 1]
        for x in results:
            sizes = [max(sizes[0], x.size(0)), max(sizes[1], x.size(1))]
        parts: list[Tensor] = []
        at = 0
        for x, start in zip(results, starts):
            x = x.expand(sizes[0], sizes[1], *x.shape[2:])
            if start > at:
                parts.append(x.new_zeros(*sizes, start - at, *x.shape[3:]))
            parts.append(x)
            at = start + x.size(dim)
        if count > at:
            parts.append(parts[-1].new_zeros(*sizes, count - at, *parts[-1].shape[3:]))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

    def _rotations(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the operands of keys, and returns q and k rotated by the phases of their tokens."""
        frames = self.rows.frames
        if not frames:
            return q, k
        starts = [f.key_row for f in frames]
        biases = self._by_sequence("key_bias", k, "batch", "heads")
        if biases is not None:
            biases = [x.to(torch.float64) for x in biases]
            self.named["key_bias"] = self._of_rows(biases, 2, starts, k.size(2))
        frequencies = self._call("frequencies")
        if frequencies is not None:
            self._frequencies(self._checked("frequencies", frequencies, pairs=None), q.size(3))
        phases = self._by_sequence("phases", k, "batch", "key_heads", pairs=None)
        if phases is None:
            return q, k
        if 2 * phases[0].size(3) > q.size(3):
            self._refuse("phases", f"at most {q.size(3) // 2} pairs, as q has {q.size(3)} columns",
                         phases[0].size(3))
        of_queries = []
        for f, x in zip(frames, phases):
            first = f.query_position - f.key_position
            if f.queries and not 0 <= first <= f.keys - f.queries:
                self._refuse("phases", "a key at the position of each query",
                             f"queries from {f.query_position} on and {f.keys} keys from "
                             f"{f.key_position} on")
            of_queries.append(x[:, :, first:first + f.queries])
        angles = self._of_rows(of_queries, 2, [f.query_row for f in frames], q.size(2))
        if angles.size(1) > 1:
            angles = angles.repeat_interleave(q.size(1) // k.size(1), 1)
        pairing = self.encoding.pairing
        of_keys = self._of_rows(phases, 2, starts, k.size(2))
        return (_rotated(q.to(self.wide), angles.to(self.wide), pairing),
                _rotated(k.to(self.wide), of_keys.to(self.wide), pairing))

    def _frequencies(self, frequencies: Tensor, columns: int) -> None:
        if frequencies.requires_grad:
            self._refuse("frequencies", "constants (train phases(), which autograd differentiates)",
                         "a tensor that requires its gradient")
        if 2 * frequencies.numel() > columns:
            self._refuse("frequencies", f"at most {columns // 2} pairs, as q has {columns} columns",
                         frequencies.numel())
        finite = frequencies.isfinite().all()
        if compiling():  # a traced value is known only when the code runs
            torch._assert_async(
                finite, "frequencies: expected finite numbers, but got NaN or infinity")
        elif not bool(finite):
            self._refuse("frequencies", "finite numbers", "NaN or infinity")
        pairs = torch.arange(frequencies.numel())
        split = self.encoding.pairing == "half-split"
        half = frequencies.numel()
        first, second = (pairs, pairs + half) if split else (2 * pairs, 2 * pairs + 1)
        self.named["frequencies"] = frequencies.to("cpu", torch.float64)
        self.named["pairs"] = torch.stack((first, second, torch.zeros_like(pairs)), 1)


def _rotated(x: Tensor, angles: Tensor, pairing: str) -> Tensor:
    """x [batch, heads, rows, columns] with its first pairs of columns rotated by angles [1 or
    batch, 1 or heads, rows, pairs]."""
    pairs = angles.size(3)
    cos, sin = angles.cos(), angles.sin()
    if pairing == "half-split":
        first, second = x[..., :pairs], x[..., pairs:2 * pairs]
    else:
        first, second = x[..., 0:2 * pairs:2], x[..., 1:2 * pairs:2]
    both = first * cos - second * sin, first * sin + second * cos
    head = torch.cat(both, 3) if pairing == "half-split" else torch.stack(both, 4).flatten(3)
    return torch.cat((head, x[..., 2 * pairs:]), 3)
