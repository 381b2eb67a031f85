"""A position encoding with its parameters, as a module."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor

from sextant import _transforms
from sextant._attention import Named, attend
from sextant._call import (CallArguments, Lengths, as_lengths, by_row, call_of, method_parameters,
                           rename_options, with_call)
from sextant._errors import InvalidValue
from sextant._packing import Result, joined_lengths

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Method(torch.nn.Module):
    """An encoding and its parameters for all layers of a model.

    Parameters keep the names of the official code (dots become underscores), so that
    ``load_state_dict`` accepts the tensors of an official checkpoint once they are selected.

    key_heads defaults to heads, width to heads * head_dim. train_length is L, the length that the
    model is trained for. **options are the options of the encoding, see ``sextant.methods()``.

    ``.to(torch.bfloat16)`` (or ``dtype=``) rounds the parameters only: biases and tables that are
    computed from them are float32. Parameters may also stay float32 while q, k and v are bfloat16
    or float16.

    The score of method("t5") has no 1/sqrt(head_dim) by default, as in T5, whose initial
    projections contain it: ``scaled=True`` divides, and so does ``scale=head_dim**-0.5`` in a call.

    A module that was made on torch.device("meta") gets its parameters by ``to_empty`` and
    ``reset_parameters``, as FSDP does."""

    def __init__(self, name: str, *, heads: int, head_dim: int, layers: int = 1,
                 key_heads: int | None = None, width: int | None = None, train_length: int = 512,
                 dtype: torch.dtype | None = None, **options: Any) -> None:
        super().__init__()
        self.name = name
        rename_options(options)
        self.options = json.dumps(options)
        self.shape = [layers, heads, heads if key_heads is None else key_heads, head_dim,
                      heads * head_dim if width is None else width, train_length]
        specs, _ = method_parameters(name, self.shape, self.options)
        self.specs: list[dict[str, Any]] = json.loads(specs)
        for spec in self.specs:
            value = torch.empty(spec["sizes"], dtype=dtype or torch.get_default_dtype())
            self.register_parameter(spec["name"].replace(".", "_"), torch.nn.Parameter(value))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gives the parameters their initial values, in place: those of the official code, random
        ones from torch's generator."""
        _, initial = method_parameters(self.name, self.shape, self.options)
        with torch.no_grad():
            for value, spec, start in zip(self.tensors(), self.specs, initial):
                _fill(value, spec, start)

    def parameter_groups(self, lr: float, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        """The parameters as groups for an optimizer of torch: a list of {"params", "lr",
        "weight_decay"}.

        lr is the rate of the model's matrices; a group's is lr times the scale that its parameters
        need (10 for T5's table, which is added to scores as it is). weight_decay is that of
        matrices; tables, biases and scalars get 0. A method without parameters has no groups."""
        groups: dict[tuple[float, bool], list[torch.nn.Parameter]] = {}
        for value, spec in zip(self.tensors(), self.specs):
            key = spec["learning_rate_scale"], spec["weight_decay"]
            groups.setdefault(key, []).append(value)
        return [
            {"params": values, "lr": lr * scale, "weight_decay": weight_decay if decays else 0.0}
            for (scale, decays), values in groups.items()
        ]

    def tensors(self) -> list[torch.nn.Parameter]:
        """The parameters, in the order of the method's list."""
        return [getattr(self, spec["name"].replace(".", "_")) for spec in self.specs]

    def embed(self, x: Tensor, *, first_query: int = 0, packed_queries: Lengths = (),
              causal: bool = True, last: bool = False, token_ids: Tensor | None = None,
              input_before: Tensor | None = None) -> Tensor:
        """Adds an absolute encoding to the input x, [batch, length, width]; with ``last``, to the
        input of the last layer's queries (emd). Encodings that add nothing there return x.

        first_query is the position of row 0; packed_queries (also by row of the batch) and causal
        are those of ``sextant.attention``. token_ids (int64 [batch, length]) is for encodings that
        depend on the tokens (complex with a table per token id, fairseq's sinusoids with padding).
        input_before [batch, 1, width] is the last row of the result for the positions before
        first_query, which a recurrence over the input (recursive with ``over="input"``) continues
        from; gradients do not pass through it when the call is traced. If x has 16 bits, the result
        is rounded to them, and a sequence in parts differs from a whole one by that rounding."""
        packed_queries = as_lengths("packed_queries", packed_queries)
        if by_row(packed_queries, packed_queries):
            if input_before is not None:
                raise InvalidValue("input_before: expected none, as sequences are packed by row")
            row = self.embed(
                x.reshape(1, -1, x.size(2)),
                first_query=first_query,
                packed_queries=joined_lengths("packed_queries", packed_queries, *x.shape[:2]),
                causal=causal,
                last=last,
                token_ids=None if token_ids is None else token_ids.reshape(1, -1),
            )
            return row.view(x.shape)
        arguments = {"first_query": first_query, "causal": causal, "packed_queries": packed_queries,
                     "last": last, "token_ids": token_ids, "input_before": input_before}
        embedded: Tensor = _transforms.call_operator(
            "method_embed", (self.name, self.shape, self.options), self.tensors(), {"x": x},
            arguments)
        return embedded

    def keys(self, k: Tensor, x: Tensor, *, layer: int = 0) -> Tensor:
        """Appends to k, [batch, key_heads, keys, head_dim], the columns that the encoding computes
        from the layer's input x, [batch, keys, width] (fox: its gates). Most encodings have none
        and return k."""
        return self._with_columns(torch.ops.sextant.method_key_columns, k, x, layer)

    def queries(self, q: Tensor, x: Tensor, *, layer: int = 0) -> Tensor:
        """Appends to q, [batch, heads, queries, head_dim], the columns that the encoding computes
        from the layer's input x, [batch, queries, width] (inkling: the vectors that meet its table;
        wavlm: its gates). Most encodings have none and return q."""
        return self._with_columns(torch.ops.sextant.method_query_columns, q, x, layer)

    def _with_columns(self, columns_of: Callable[..., Tensor], rows: Tensor, x: Tensor,
                      layer: int) -> Tensor:
        columns = columns_of(self.name, self.shape, self.options, self.tensors(), x, layer=layer)
        return torch.cat((rows, columns), 3) if columns.size(3) else rows

    def run_last_layer(self, x: Tensor, layer: Callable[[Tensor, Tensor], Tensor],
                       **place: Any) -> Tensor:
        """Runs the last layer of a model, for methods that add absolute positions there (emd). With
        any other method it is layer(x, x).

        x [batch, length, width] is the output of the layer before. layer(queries, keys) is the
        whole last layer: it takes queries and residual from its first argument, keys and values
        from the second. **place are arguments of ``embed``.
        """
        queries = self.embed(x, last=True, **place)
        for _ in range(
            torch.ops.sextant.method_last_layer_runs(self.name, self.shape, self.options)
        ):
            queries = layer(queries, x)
        return queries

    @overload
    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[False] = ...,
                **call: Unpack[CallArguments]) -> Tensor: ...
    @overload
    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[True],
                **call: Unpack[CallArguments]) -> tuple[Tensor, Tensor]: ...
    @with_call
    def forward(self, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Result:
        """Computes the attention of one layer and returns [batch, heads, queries, value_dim], with
        return_lse=True also lse. k is the result of ``keys``. **call are the arguments of
        ``sextant.attention`` beside those that name a method.

        Dropout depends on dropout_p alone and not on ``training``: pass ``dropout_p=p if
        self.training else 0.0``, as to ``scaled_dot_product_attention``.

        Raises errors as ``sextant.attention`` does: q, k and v must have the heads, key_heads and
        head_dim of the method."""
        named = Named(self.name, self.shape, self.options, list(self.tensors()))
        return attend(named, q, k, v, call_of(Method.forward, call))

    if TYPE_CHECKING:
        __call__ = forward

    def extra_repr(self) -> str:
        return f"{self.name}, options={self.options}"


def _fill(value: Tensor, spec: dict[str, Any], start: Tensor) -> None:
    low, high = spec["low"], spec["high"]
    if start.numel() == value.numel() and value.numel() > 0:
        value.copy_(start)
    elif spec["init"] == "normal":
        value.normal_(low, high)
    elif spec["init"] == "uniform":
        value.uniform_(low, high)
    else:
        value.fill_({"zeros": 0.0, "ones": 1.0}[spec["init"]])


def method(name: str, *, heads: int, head_dim: int, **arguments: Any) -> Method:
    """Creates an encoding by its name, see ``sextant.methods()``. The arguments are those of
    ``Method``. Raises ValueError for unknown names and options.

    method("t5") does not divide scores by sqrt(head_dim) by default, see ``Method``."""
    return Method(name, heads=heads, head_dim=head_dim, **arguments)
