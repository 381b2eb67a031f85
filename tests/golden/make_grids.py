"""Makes the golden cases of methods on grids by the classes of transformers.

    python tests/golden/make_grids.py FOLDER      needs torch and transformers (4.57.6 made them)

Everything is float64. Projections are left out: q, k and v go to the code of attention itself.
"""

import json
import struct
import sys
from pathlib import Path

import numpy
import torch
import transformers
from torch.nn.functional import normalize
from transformers.models.beit import modeling_beit
from transformers.models.layoutlmv3 import modeling_layoutlmv3
from transformers.models.sam import modeling_sam
from transformers.models.swin import modeling_swin
from transformers.models.swinv2 import modeling_swinv2

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double  # the classes' casts to float32
HEADS, HEAD_DIM = 3, 8


def save(folder, name, meta, arrays):
    header, data = {"__metadata__": {"meta": json.dumps(meta)}}, b""
    for key, tensor in sorted(arrays.items()):
        array = numpy.ascontiguousarray(tensor.detach().numpy())
        kind = {"float64": "F64", "int64": "I64"}[str(array.dtype)]
        header[key] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def rows(count):
    return [torch.randn(1, HEADS, count, HEAD_DIM).requires_grad_() for _ in range(3)]


def attend(scores, v):
    return torch.softmax(scores, -1) @ v


def case(folder, name, meta, q, k, v, out, trained, **more):
    method, source = meta.pop("method"), meta.pop("source")
    gout = torch.randn_like(out)
    leaves = {"q": q, "k": k, "v": v, **trained}
    grads = torch.autograd.grad((out * gout).sum(), list(leaves.values()))
    arrays = {**leaves, "out": out, "gout": gout, **more}
    arrays |= {f"d_{key}": grad for key, grad in zip(leaves, grads)}
    version = f"transformers {transformers.__version__}: {source}"
    save(folder, name, {"method": method, "source": version, **meta}, arrays)


def sam(folder, name, grid, tables):
    q, k, v = rows(grid[0] * grid[1])
    of_h, of_w = (torch.randn(2 * n - 1, HEAD_DIM).requires_grad_() for n in tables)
    module = modeling_sam.SamVisionAttention.__new__(modeling_sam.SamVisionAttention)
    torch.nn.Module.__init__(module)
    flat = q[0]  # [heads, places, columns], as after the reshape of SamVisionAttention.forward
    bias = module.get_decomposed_rel_pos(flat, of_h, of_w, grid, grid)
    places = grid[0] * grid[1]
    scores = (flat * HEAD_DIM**-0.5) @ k[0].transpose(-2, -1) + bias.reshape(HEADS, places, places)
    meta = {
        "method": "SAM decomposed vectors",
        "source": "SamVisionAttention.get_decomposed_rel_pos",
        "grid": grid,
        "tables": tables,
    }
    out = attend(scores, v[0])[None]
    case(folder, name, meta, q, k, v, out, {"rel_pos_h": of_h, "rel_pos_w": of_w})


def swin(folder, window):
    q, k, v = rows(window[0] * window[1])
    config = modeling_swin.SwinConfig(embed_dim=HEADS * HEAD_DIM)
    module = modeling_swin.SwinSelfAttention(config, HEADS * HEAD_DIM, HEADS, window)
    table = torch.randn_like(module.relative_position_bias_table).requires_grad_()
    index = module.relative_position_index.view(-1)
    bias = table[index].view(*[window[0] * window[1]] * 2, -1).permute(2, 0, 1)[None]
    out = attend(q @ k.transpose(-2, -1) / HEAD_DIM**0.5 + bias, v)
    source = "SwinSelfAttention.relative_position_index"
    meta = {"method": "Swin table", "source": source, "window": window}
    case(folder, "swin_table", meta, q, k, v, out, {"table": table})


def swinv2(folder, window, trained):
    q, k, v = rows(window[0] * window[1])
    config = modeling_swinv2.Swinv2Config(embed_dim=HEADS * HEAD_DIM)
    module = modeling_swinv2.Swinv2SelfAttention(config, HEADS * HEAD_DIM, HEADS, window, trained)
    module = module.double()
    scale = torch.tensor([0.3, 2.0, 9.0]).view(HEADS, 1, 1).requires_grad_()
    mlp = module.continuous_position_bias_mlp
    table = mlp(module.relative_coords_table).view(-1, HEADS)
    index = module.relative_position_index.view(-1)
    bias = 16 * torch.sigmoid(table[index].view(*[window[0] * window[1]] * 2, -1).permute(2, 0, 1))
    scores = normalize(q, dim=-1) @ normalize(k, dim=-1).transpose(-2, -1)
    scores = scores * torch.clamp(scale, max=numpy.log(1 / 0.01)).exp() + bias[None]
    network = {"w1": mlp[0].weight, "b1": mlp[0].bias, "w2": mlp[2].weight}
    meta = {
        "method": "Swin v2 continuous bias",
        "source": "Swinv2SelfAttention",
        "window": window,
        "trained": trained,
    }
    out = attend(scores, v)
    case(folder, "swinv2_continuous", meta, q, k, v, out, {"logit_scale": scale, **network})


def beit(folder, grid):
    q, k, v = rows(grid[0] * grid[1] + 1)
    module = modeling_beit.BeitRelativePositionBias(
        modeling_beit.BeitConfig(num_attention_heads=HEADS), window_size=grid
    ).double()
    table = module.relative_position_bias_table
    with torch.no_grad():
        table.normal_()
    bias = module(grid)
    out = attend(q @ k.transpose(-2, -1) / HEAD_DIM**0.5 + bias, v)
    meta = {"method": "BEiT table", "source": "BeitRelativePositionBias", "grid": grid}
    case(folder, "beit_table", meta, q, k, v, out, {"table": table})


def layoutlm(folder):
    tokens = 23
    q, k, v = rows(tokens)
    config = modeling_layoutlmv3.LayoutLMv3Config(
        hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS, num_hidden_layers=1,
        has_relative_attention_bias=True, has_spatial_attention_bias=True,
    )
    encoder = modeling_layoutlmv3.LayoutLMv3Encoder(config).double()
    boxes = torch.randint(0, 1001, (1, tokens, 4))
    positions = torch.arange(tokens)[None]
    with torch.no_grad():
        for linear in (encoder.rel_pos_bias, encoder.rel_pos_x_bias, encoder.rel_pos_y_bias):
            linear.weight.normal_()
    # These methods compute without gradients, so a case has those of q, k and v alone.
    text = encoder._cal_1d_pos_emb(positions)
    page = encoder._cal_2d_pos_emb(boxes)
    scores = q / HEAD_DIM**0.5 @ k.transpose(-1, -2) + (text + page) / HEAD_DIM**0.5
    tables = {
        "text": encoder.rel_pos_bias,
        "x": encoder.rel_pos_x_bias,
        "y": encoder.rel_pos_y_bias,
    }
    arrays = {key: linear.weight.detach() for key, linear in tables.items()}
    arrays["positions"] = torch.stack([boxes[..., 0], boxes[..., 3]], 1)
    source = "LayoutLMv3Encoder._cal_1d_pos_emb, _cal_2d_pos_emb"
    meta = {"method": "LayoutLMv3 biases", "source": source}
    case(folder, "layoutlmv3", meta, q, k, v, attend(scores, v), {}, **arrays)


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(69)
    sam(folder, "sam_vectors", (4, 5), (4, 5))
    sam(folder, "sam_vectors_resized", (5, 3), (4, 5))
    swin(folder, (3, 4))
    swinv2(folder, (4, 3), (2, 3))
    beit(folder, (4, 4))  # transformers mixes up the sides of a grid that is not square
    layoutlm(folder)


if __name__ == "__main__":
    main()
