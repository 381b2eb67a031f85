"""Small models of pictures with positions on a grid: for swept.py and tiny.py."""

import torch
import transformers


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


IMAGE = dict(image_size=64, patch_size=8)
WINDOWS = dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
               window_size=4, initializer_range=0.2)
# 10 x 10 places in windows of 4: with padding.
VISION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, output_channels=32,
              mlp_dim=96, image_size=80, patch_size=8, window_size=4, global_attn_indexes=[1],
              initializer_range=0.1)  # its default is 1e-10
GRID = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            image_size=(32, 32), patch_size=8, layer_scale_init_value=1.0)
TEXT = dict(vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
            pad_token_id=0, bos_token_id=1, eos_token_id=2)


def sam(kind="Sam"):
    """Its parts have sizes that follow from each other."""
    decoder = dict(vit_dim=64) if kind == "SamHQ" else {}
    return getattr(transformers, f"{kind}Config")(
        vision_config={**VISION, **IMAGE, "num_pos_feats": 16},
        prompt_encoder_config=dict(hidden_size=32, **IMAGE),
        mask_decoder_config=dict(hidden_size=32, num_attention_heads=4, mlp_dim=64,
                                 num_hidden_layers=2, iou_head_hidden_dim=32, **decoder))


def vitdet():
    """Tables of 6 x 6 places, for pictures of 8 x 8, and windows with padding."""
    return transformers.VitDetConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=24, patch_size=4,
        pretrain_image_size=32, window_size=3, window_block_indices=[0], mlp_ratio=2,
        use_relative_position_embeddings=True)


def clap():
    return transformers.ClapConfig(
        text_config=TEXT, projection_dim=32, audio_config=dict(
            window_size=4, num_mel_bins=32, spec_size=64, hidden_size=32, patch_size=4,
            patch_stride=[4, 4], depths=[2, 2], num_attention_heads=[2, 4],
            patch_embeds_hidden_size=16, num_hidden_layers=2, projection_dim=32))


def ocr(kind, **text):
    encoder = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                   num_attention_heads=4, num_key_value_heads=4, image_size=16, patch_size=4)
    text = {**TEXT, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
            "mlp_layer_types": ["dense", "sparse"], "n_group": 1, "topk_group": 1, **text}
    return getattr(transformers, f"{kind}Config")(
        image_token_id=98, text_config=text, vision_config=dict(
            sam_config={**VISION, **IMAGE, "downsample_channels": [48, 64]},
            encoder_config=encoder))


def with_picture(places, image_token, size=64):
    """Tokens with as many of the image's as a model has vectors for a picture."""
    ids = torch.arange(2 * 12).view(2, 12) % 80 + 5
    return {"input_ids": torch.cat([torch.full((2, places), image_token), ids], 1),
            "pixel_values": normal(2, 3, size, size)}


CONFIGS = {
    "sam": sam,
    "sam_hq": lambda: sam("SamHQ"),
    "sam_vision_model": lambda: transformers.SamVisionConfig(**VISION, num_pos_feats=16),
    "vitdet": vitdet,
    "seggpt": lambda: transformers.SegGptConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=(64, 32),
        patch_size=8, pretrain_image_size=32, mlp_dim=96, decoder_hidden_size=16, merge_index=0,
        intermediate_hidden_state_indices=[0, 1]),
    "swin": lambda: transformers.SwinConfig(**WINDOWS),
    "swinv2": lambda: transformers.Swinv2Config(**WINDOWS, pretrained_window_sizes=[3, 4]),
    "swin2sr": lambda: transformers.Swin2SRConfig(**{**WINDOWS, "patch_size": 1,
                                                     "image_size": 16}),
    "donut-swin": lambda: transformers.DonutSwinConfig(**WINDOWS),
    "maskformer-swin": lambda: transformers.MaskFormerSwinConfig(**WINDOWS),
    "clap": clap,
    "beit": lambda: transformers.BeitConfig(**GRID, use_relative_position_bias=True),
    "data2vec-vision": lambda: transformers.Data2VecVisionConfig(
        **GRID, use_relative_position_bias=True),
    "deepseek_ocr2": lambda: ocr("DeepseekOcr2"),
    "unlimited_ocr": lambda: ocr("UnlimitedOcr", num_key_value_heads=4),
    "got_ocr2": lambda: transformers.GotOcr2Config(
        image_token_index=98, image_seq_length=4, text_config=dict(model_type="qwen2", **TEXT),
        vision_config={**VISION, **IMAGE}),
    "pp_formulanet": lambda: transformers.PPFormulaNetConfig(vision_config=dict(
        **VISION, post_conv_in_channels=32, post_conv_out_channels=64, post_conv_mid_channels=48,
        decoder_hidden_size=64)).vision_config,
    "slanext": lambda: transformers.SLANeXtConfig(
        vision_config=VISION, post_conv_in_channels=32, post_conv_out_channels=48, hidden_size=48,
        max_text_length=4),
}
CLASSES = {"pp_formulanet": "PPFormulaNetVisionModel", "slanext": "SLANeXtForTableRecognition"}
POINTS = {"pixel_values": normal(2, 3, 64, 64), "input_points": torch.full((2, 1, 2, 2), 30.0)}
INPUTS = {
    "deepseek_ocr2": with_picture(145, 98), "unlimited_ocr": with_picture(7, 98),
    "got_ocr2": with_picture(4, 98),
    "sam": POINTS, "sam_hq": POINTS,
    "seggpt": {"prompt_pixel_values": normal(2, 3, 32, 32), "prompt_masks": normal(2, 3, 32, 32)},
    **dict.fromkeys(("sam_vision_model", "pp_formulanet", "slanext"),
                    {"pixel_values": normal(2, 3, 80, 80)}),
    "clap": {"input_features": normal(2, 1, 128, 32)},
}
# Name -> (type, further fields of its configuration).
VARIANTS = {f"{kind}, shared": (kind, {"use_shared_relative_position_bias": True})
            for kind in ("beit", "data2vec-vision")}
VARIANTS |= {
    # Sides are mixed up by transformers.
    "beit, 3 x 5 places": ("beit", {"image_size": (24, 40)}),
    "beit, absolute": ("beit", {"use_relative_position_bias": False}),
    "vitdet, absolute": ("vitdet", {"use_relative_position_embeddings": False}),
}
