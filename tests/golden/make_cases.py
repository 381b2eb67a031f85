"""Makes the golden cases of grids, axes, wavlm and inkling by the classes of transformers.

    python tests/golden/make_cases.py FOLDER grids      transformers 4.57.6 made these
    python tests/golden/make_cases.py FOLDER gated      and 5.24.0 these
    python tests/golden/make_cases.py FOLDER axes       and these

Everything is float64. Projections are left out: q, k and v go to the code of attention itself.
"""

import importlib
import json
import struct
import sys
from pathlib import Path

import numpy
import torch
import transformers
from torch.nn.functional import normalize

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double  # the classes' casts to float32
HEADS, HEAD_DIM = 3, 8


def code_of(model):
    return importlib.import_module(f"transformers.models.{model}.modeling_{model}")


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
    module = code_of("sam").SamVisionAttention.__new__(code_of("sam").SamVisionAttention)
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
    config = code_of("swin").SwinConfig(embed_dim=HEADS * HEAD_DIM)
    module = code_of("swin").SwinSelfAttention(config, HEADS * HEAD_DIM, HEADS, window)
    table = torch.randn_like(module.relative_position_bias_table).requires_grad_()
    index = module.relative_position_index.view(-1)
    bias = table[index].view(*[window[0] * window[1]] * 2, -1).permute(2, 0, 1)[None]
    out = attend(q @ k.transpose(-2, -1) / HEAD_DIM**0.5 + bias, v)
    source = "SwinSelfAttention.relative_position_index"
    meta = {"method": "Swin table", "source": source, "window": window}
    case(folder, "swin_table", meta, q, k, v, out, {"table": table})


def swinv2(folder, window, trained):
    q, k, v = rows(window[0] * window[1])
    config = code_of("swinv2").Swinv2Config(embed_dim=HEADS * HEAD_DIM)
    module = code_of("swinv2").Swinv2SelfAttention(config, HEADS * HEAD_DIM, HEADS, window, trained)
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
    module = code_of("beit").BeitRelativePositionBias(
        code_of("beit").BeitConfig(num_attention_heads=HEADS), window_size=grid
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
    config = code_of("layoutlmv3").LayoutLMv3Config(
        hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS, num_hidden_layers=1,
        has_relative_attention_bias=True, has_spatial_attention_bias=True,
    )
    encoder = code_of("layoutlmv3").LayoutLMv3Encoder(config).double()
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


def wavlm(folder):
    tokens, width = 11, HEADS * HEAD_DIM
    q, k, v = rows(tokens)
    module = code_of("wavlm").WavLMAttention(width, HEADS, num_buckets=8, max_distance=20).double()
    gated = {}

    def attend_with_bias(hidden_states, attention_mask, gated_position_bias, *rest):
        gated["bias"] = gated_position_bias
        return hidden_states, None

    module.torch_multi_head_self_attention = attend_with_bias
    with torch.no_grad():
        for tensor in module.parameters():
            tensor.normal_()
    x = torch.randn(1, tokens, width).requires_grad_()
    module(x)
    bias = gated["bias"].view(1, HEADS, tokens, tokens)
    out = attend(q @ k.transpose(-2, -1) / HEAD_DIM**0.5 + bias, v)
    trained = {
        "x": x,
        "table": module.rel_attn_embed.weight,
        "const": module.gru_rel_pos_const,
        "weight": module.gru_rel_pos_linear.weight,
        "linear_bias": module.gru_rel_pos_linear.bias,
    }
    meta = {"method": "WavLM gated bias", "source": "WavLMAttention.forward, compute_bias"}
    meta |= {"buckets": 8, "max_distance": 20}
    case(folder, "wavlm", meta, q, k, v, out, trained)


def inkling(folder, second):
    tokens, width, columns, reach = 13, 10, 4, 6
    q, k, v = rows(tokens)
    x = torch.randn(1, tokens, width).requires_grad_()
    module = code_of("inkling").InklingRelativeLogits(columns, reach).double()
    with torch.no_grad():
        module.proj.normal_()
    w_r = torch.randn(HEADS * columns, width).requires_grad_()
    r = torch.nn.functional.linear(x, w_r).view(1, tokens, HEADS, columns)
    at = torch.arange(tokens)
    tau = 1 + 0.3 * torch.log(((at + 1) / 4).clamp(min=1)).view(1, 1, -1, 1)
    scale = HEAD_DIM**-0.5 if second else 1 / HEAD_DIM
    scores = tau * (q @ k.transpose(-2, -1) * scale + module(r, at, at))
    scores = scores.masked_fill(at[None] > at[:, None], -torch.inf)
    trained = {"x": x, "proj": module.proj, "w_r": w_r}
    if second:
        trained["w_sink"] = torch.randn(HEADS, width).requires_grad_()
        sinks = torch.nn.functional.linear(x, trained["w_sink"]).transpose(1, 2).unsqueeze(-1)
        out = torch.softmax(torch.cat([scores, sinks], -1), -1)[..., :-1] @ v
    else:
        out = attend(scores, v)
    meta = {"method": "Inkling 2" if second else "Inkling", "source": "InklingRelativeLogits"}
    meta |= {"columns": columns, "reach": reach, "log_alpha": 0.3, "log_floor": 4.0}
    case(folder, "inkling2" if second else "inkling", meta, q, k, v, out, trained)


def rotation(folder, model, kind, options, config, positions, apply, ids):
    """A rotary class and the function that rotates. positions: [axes, rows] as rope has them; ids:
    as the class has them."""
    code, head_dim = code_of(model), 2 * sum(options["sections"])
    rotary = getattr(code, kind)(config)
    x = torch.randn(1, positions.shape[1], HEADS, head_dim + options.pop("unrotated", 0))
    cos, sin = rotary(x, ids)
    out = apply(code)(x, cos, sin)
    meta = {"method": "rotation by axes", "options": options,
            "source": f"transformers {transformers.__version__}: {kind}"}
    arrays = {"x": x.transpose(1, 2), "positions": positions, "rotated": out.transpose(1, 2)}
    save(folder, f"axes_{model}", meta, arrays)


def axes(folder):
    torch.float = torch.float64  # the classes name the type of their frequencies

    def config_of(model, kind, **values):
        name = f"transformers.models.{model}.configuration_{model}"
        return getattr(importlib.import_module(name), kind)(num_attention_heads=HEADS, **values)
    t, y, x = (g.flatten() for g in torch.meshgrid(*map(torch.arange, (2, 3, 4)), indexing="ij"))
    plane, volume = torch.stack([y, x]), torch.stack([t, y, x])

    def vision(code):
        return lambda q, cos, sin: code.apply_rotary_pos_emb_vision(q[0], q[0], cos, sin)[0][None]

    def text(code):
        return lambda q, cos, sin: code.apply_rotary_pos_emb(q, q, cos, sin, unsqueeze_dim=2)[0]
    rotation(folder, "pixtral", "PixtralVisionRotaryEmbedding",
             {"axes": "strided", "sections": [4, 4]},
             config_of("pixtral", "PixtralVisionConfig", head_dim=16, hidden_size=48), plane,
             lambda code: lambda q, cos, sin: text(code)(q, cos[None], sin[None]), ids=plane.T)
    rotation(folder, "kimi_k25", "Kimi_K25VisionRotaryEmbedding",
             {"axes": "restart-interleaved", "sections": [4, 4]},
             config_of("kimi_k25", "Kimi_K25VisionConfig", hidden_size=48), plane.flip(0), vision,
             ids=plane.T)
    rotation(folder, "minimax_m3_vl", "MiniMaxM3VLVisionRotaryEmbedding",
             {"axes": "restart", "sections": [3, 3, 3], "dim": 18, "unrotated": 2},
             config_of("minimax_m3_vl", "MiniMaxM3VLVisionConfig", hidden_size=60), volume, vision,
             ids=volume.T)
    parameters = {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [3, 3, 2]}
    rotation(folder, "ernie4_5_vl_moe", "Ernie4_5_VLMoeTextRotaryEmbedding",
             {"axes": "plane-first", "sections": [2, 3, 3], "base": 500000.0,
              "pairing": "interleaved"},
             config_of("ernie4_5_vl_moe", "Ernie4_5_VLMoeTextConfig", hidden_size=48,
                       num_key_value_heads=HEADS, rope_parameters=parameters), volume, text,
             ids=volume[:, None])


def main():
    folder, which = Path(sys.argv[1]), sys.argv[2]
    torch.manual_seed(69)
    if which == "grids":
        sam(folder, "sam_vectors", (4, 5), (4, 5))
        sam(folder, "sam_vectors_resized", (5, 3), (4, 5))
        swin(folder, (3, 4))
        swinv2(folder, (4, 3), (2, 3))
        beit(folder, (4, 4))  # transformers mixes up the sides of a grid that is not square
        layoutlm(folder)
    elif which == "axes":
        axes(folder)
    else:
        wavlm(folder)
        inkling(folder, second=False)
        inkling(folder, second=True)


if __name__ == "__main__":
    main()
