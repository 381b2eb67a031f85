"""A position encoding with its parameters, as a module."""

import json

import torch

from sextant.attention import attend


class Method(torch.nn.Module):
    """Parameters keep the names of the official code (dots become underscores), so that
    ``load_state_dict`` takes an official checkpoint's tensors once they are selected.

    ``.to(torch.bfloat16)`` (or ``dtype=``) rounds the parameters, and no more: what is made of them
    (biases, tables) is float32. They may stay float32 where q, k and v are bfloat16 or float16,
    too."""

    def __init__(
        self,
        name,
        *,
        heads,
        head_dim,
        layers=1,
        key_heads=None,
        width=None,
        train_length=512,
        dtype=None,
        **options,
    ):
        super().__init__()
        self.name = name
        self.options = json.dumps(options)
        self.shape = [
            layers,
            heads,
            key_heads or heads,
            head_dim,
            width or heads * head_dim,
            train_length,
        ]
        specs, initial = torch.ops.sextant.method_parameters(name, self.shape, self.options)
        self.specs = json.loads(specs)
        for spec, start in zip(self.specs, initial):
            value = torch.empty(spec["sizes"], dtype=dtype or torch.get_default_dtype())
            self.register_parameter(spec["name"].replace(".", "_"), torch.nn.Parameter(value))
            with torch.no_grad():
                _fill(value, spec, start)

    def tensors(self):
        """The parameters in the method's own order."""
        return [getattr(self, spec["name"].replace(".", "_")) for spec in self.specs]

    def embed(self, x, *, first_query=0, packed_queries=(), causal=True, last=False, token_ids=None):
        """Absolute encodings: x [batch, length, width] with what the encoding adds to the input;
        with ``last``, with what it adds to the input of the last layer's queries (emd).

        token_ids (int64 [batch, length]) are the token at each position, for encodings that go by
        them (complex with tables by word, fairseq's sinusoids with padding)."""
        return torch.ops.sextant.method_embed(
            self.name,
            self.shape,
            self.options,
            self.tensors(),
            x,
            first_query=first_query,
            causal=causal,
            packed_queries=list(packed_queries),
            last=last,
            token_ids=token_ids,
        )

    def keys(self, k, x, *, layer=0):
        """k [batch, key_heads, keys, head_dim] with what the encoding keeps of the layer's input
        besides: further columns, made of x [batch, keys, width] (fox: its gates). With most
        encodings just k."""
        columns = torch.ops.sextant.method_key_columns(
            self.name, self.shape, self.options, self.tensors(), x, layer=layer
        )
        return torch.cat((k, columns), 3) if columns.size(3) else k

    def run_last_layer(self, x, layer, **place):
        """A model's last layer where a method gives it absolute positions (emd); with any other
        method just layer(x, x).

        x [batch, length, width] is the output of the layer before. layer(queries, keys) is the
        whole last layer: its queries and its residual are those of the first argument, its keys and
        values those of the second. place: arguments of ``embed``.
        """
        queries = self.embed(x, last=True, **place)
        for _ in range(torch.ops.sextant.method_last_layer_runs(self.name, self.shape, self.options)):
            queries = layer(queries, x)
        return queries

    def forward(self, q, k, v, **place):
        """Attends in one layer, k as ``keys`` gives it. place: layer, and the arguments of
        ``sextant.attention`` from causal to key_positions, cache and texts."""
        return attend(self.name, self.shape, self.options, self.tensors(), q, k, v, **place)

    def extra_repr(self):
        return f"{self.name}, options={self.options}"


def _fill(value, spec, start):
    low, high = spec["low"], spec["high"]
    if start.numel() == value.numel() and value.numel() > 0:
        value.copy_(start)
    elif spec["init"] == "normal":
        value.normal_(low, high)
    elif spec["init"] == "uniform":
        value.uniform_(low, high)
    else:
        value.fill_({"zeros": 0.0, "ones": 1.0}[spec["init"]])


def method(name, **arguments):
    """An encoding by name, see ``sextant.methods()``; arguments as of ``Method``."""
    return Method(name, **arguments)
