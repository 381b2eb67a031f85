"""Runs of rotary code that is not in a tower of pixels, or whose coordinates need a tower of their
own: memory attention, windows, matching of two pictures, frames.

Each returns what was rotated, as the runs of towers do.
"""

from __future__ import annotations

import copy
from typing import Any

from .models import classes_of
from .towers import COLUMNS, ROWS, Rotated, by_token, raster, recorded, shrink


def memory_attention(modeling: Any, config: Any) -> list[Rotated]:
    """SAM 2's kind: the attention to a memory of earlier frames."""
    import torch
    small = copy.deepcopy(config)
    names = [n for n in ("memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes")
             if hasattr(small, n)]
    for name in names:
        setattr(small, name, [COLUMNS, ROWS])
    kind = next(c for c in classes_of(modeling, torch.nn.Module)
                if c.__name__.endswith("MemoryAttention"))
    model, calls = kind(small).eval(), []
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    features = torch.randn(ROWS * COLUMNS, 1, config.memory_attention_hidden_size)
    memory = torch.randn(ROWS * COLUMNS, 1, config.memory_encoder_output_channels)
    more = {"num_spatial_memory_tokens": 1} if len(names) > 1 else {}
    with recorded(modeling, calls), torch.no_grad():
        model(features, memory, features * 0, memory * 0, **more)
    places = raster(ROWS, COLUMNS)
    return [Rotated(by_token(x, len(places)), by_token(y, len(places)), places, (ROWS, COLUMNS))
            for x, y in calls]


def sam3_windows(modeling: Any, config: Any) -> list[Rotated]:
    """SAM 3's tower: windows with coordinates of their own, and a layer that sees all patches, at
    coordinates that are scaled to one window."""
    import torch
    small, side, patch = shrink(config, 2), 3, config.patch_size
    small.window_size, small.global_attn_indexes = side, [1]
    # image_size is [width, height] here, and the windows fit in both sides.
    rows, columns = 2 * side, 3 * side
    small.image_size, small.pretrain_image_size = [columns * patch, rows * patch], side * patch
    model, calls = modeling.Sam3ViTModel(small).eval(), []
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    with recorded(modeling, calls), torch.no_grad():
        model(torch.randn(1, 3, rows * patch, columns * patch))
    (x, y), (p, q) = calls[0], calls[1]
    local, whole = raster(side, side), raster(rows, columns)
    return [Rotated(by_token(x[:1], side ** 2), by_token(y[:1], side ** 2), local, (side, side)),
            Rotated(by_token(p, len(whole)), by_token(q, len(whole)), whole, (rows, columns),
                    scale=side / columns)], small


def loftr(modeling: Any, config: Any) -> list[Rotated]:
    import torch
    rows, columns = ROWS, COLUMNS
    stride, kernel = config.q_aggregation_stride, config.q_aggregation_kernel_size
    x = torch.randn(1, config.hidden_size, (rows - 1) * stride + kernel,
                    (columns - 1) * stride + kernel)
    cos, sin = modeling.EfficientLoFTRRotaryEmbedding(config)(x)
    q = torch.randn(1, rows * columns, config.hidden_size)
    flat = [c.reshape(1, rows * columns, -1) for c in (cos, sin)]
    out = modeling.apply_rotary_pos_emb(q[:, :, None], q[:, :, None], *flat, unsqueeze_dim=2)[0]
    places = raster(rows, columns)
    return [Rotated(by_token(q, len(places)), by_token(out[:, :, 0], len(places)), places,
                    (rows, columns))]


def pe_video(modeling: Any, config: Any) -> list[Rotated]:
    import torch
    positions = torch.arange(COLUMNS)[None]
    q = torch.randn(1, 1, COLUMNS, config.head_dim)
    cos, sin = modeling.PeVideoEncoderRotaryEmbedding(config)(q, positions)
    out = modeling.apply_rotary_pos_emb(q, q, cos, sin)[0]
    places = [(0, 0, x) for x in range(COLUMNS)]
    return [Rotated(by_token(q, COLUMNS), by_token(out, COLUMNS), places, (1, COLUMNS))]


def dinov3_module(modeling: Any, config: Any) -> list[Rotated]:
    """EoMT-DINOv3 needs a backbone of pictures and masks; its rotary class and function do."""
    import torch
    patch, places = config.patch_size, raster(ROWS, COLUMNS)
    head_dim = config.hidden_size // config.num_attention_heads
    rotary = modeling.EomtDinov3RotaryEmbedding(config).eval()
    cos, sin = rotary(torch.randn(1, 3, ROWS * patch, COLUMNS * patch))
    q = torch.randn(1, 1, 1 + len(places), head_dim)
    out = modeling.apply_rotary_pos_emb(q, q, cos, sin)[0]
    return [Rotated(by_token(q, q.shape[2]), by_token(out, q.shape[2]), [None, *places],
                    (ROWS, COLUMNS))]


OWN_RUNS = {"sam2_video": memory_attention, "sam3_tracker_video": memory_attention,
            "edgetam_video": memory_attention, "efficientloftr": loftr,
            "pe_video_encoder": pe_video, "eomt_dinov3": dinov3_module}
