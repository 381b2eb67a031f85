"""Models of any type of transformers, made small by one rule, with inputs that they compute.

    python swept.py [TYPE ...]    tries each type, by default all: what accelerate() says, and
                                  whether a model that it accepts computes the same

A type is "equal", "partly" (some layers keep their own code), "refused", or not built; one that is
accepted and then fails or differs is a failure.
"""

import copy
import pathlib
import re
import signal
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.configuration_utils import PretrainedConfig  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES  # noqa: E402

import pictures  # noqa: E402

HIDDEN, HEADS, LAYERS, INNER, VOCABULARY, ROWS = 64, 4, 2, 96, 99, 128
# Field of a configuration -> its small value, where the default is a number.
FIELDS = {
    **dict.fromkeys(("hidden_size", "d_model", "dim", "n_embd", "embed_dim", "embedding_size",
                     "word_embed_proj_dim", "lru_width", "d_embed"), HIDDEN),
    **dict.fromkeys(("hidden_dim", "intermediate_size", "d_ff", "ffn_dim", "n_inner", "mlp_dim",
                     "encoder_ffn_dim", "decoder_ffn_dim", "feed_forward_hidden_size", "d_inner",
                     "speech_encoder_intermediate_size", "t2u_encoder_ffn_dim",
                     "t2u_decoder_ffn_dim"), INNER),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers",
                     "decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth",
                     "speech_encoder_layers", "t2u_encoder_layers", "t2u_decoder_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads",
                     "encoder_attention_heads", "decoder_attention_heads",
                     "speech_encoder_attention_heads", "t2u_encoder_attention_heads",
                     "t2u_decoder_attention_heads"), HEADS),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_source_positions",
                     "max_target_positions"), ROWS),
    "num_key_value_heads": 2, "head_dim": 16, "d_kv": 16, "vocab_size": VOCABULARY,
    "projection_dim": 32, "num_experts": 2, "num_local_experts": 2, "n_routed_experts": 4,
    "num_experts_per_tok": 1, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "image_size": 32, "patch_size": 8, "q_lora_rank": 16, "kv_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12, "n_group": 1, "topk_group": 1,
    "num_queries": 5, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 0, "rotary_dim": 8, "num_mel_bins": 80, "sliding_window": 16,
    "first_k_dense_replace": 1,
}
MOST_PARAMETERS = 60e6
# Parameters of relative positions.
POSITIONS = re.compile(r"bias_[uv]$|pos_bias|rel_pos|_r_|relative|distance_embedding|bias_table|"
                       r"rel_h|rel_w|emb_rel|pe_k|pos_k|gru_rel|r_w_bias|r_s_bias|seg_embed|"
                       r"rel_embeddings|pos_query")
# Weights of layers of attention, without which its terms would not show in results.
ATTENTION = re.compile(r"(\b|_)(q|k|v|o|out|pos|query|key|value)(_proj)?\.weight$")


def shrink(config, depth=0):
    """Small values in a configuration and those inside it."""
    for name, value in FIELDS.items():
        own = getattr(config, name, None)
        if isinstance(own, (bool, list, tuple, dict)) or (
                own is None and (name != "num_key_value_heads" or not hasattr(config, name))):
            continue
        try:
            setattr(config, name, value)
        except Exception:  # some are computed from others
            pass
    kinds = getattr(config, "layer_types", None)
    if isinstance(kinds, list):
        some = list(dict.fromkeys(kinds))
        config.layer_types = some * 2 if len(some) == 1 else some
        for name in ("num_hidden_layers", "n_layer", "num_layers"):
            if isinstance(getattr(config, name, None), int):
                setattr(config, name, len(config.layer_types))
    for inner in list(vars(config).values()):
        if isinstance(inner, PretrainedConfig) and depth < 3:
            shrink(inner, depth + 1)
    return config


def candidates(main):
    """Inputs by the main input of a model."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator)
    tokens = {"input_ids": torch.randint(3, 90, (2, 32), generator=generator)}
    for more in ({}, {"decoder_input_ids": torch.randint(3, 90, (2, 12), generator=generator)}):
        if main == "input_ids":
            yield {**tokens, **more}
        elif main == "pixel_values":
            for size in (32, 64, 224):
                yield {main: normal(2, 3, size, size), **more}
            yield {**tokens, main: normal(2, 3, 32, 32)}
        elif main == "input_values":
            yield {main: normal(2, 2000), **more}
        else:
            for shape in ((2, 64, 80), (2, 80, 64), (2, 80, 256), (2, 64, 160), (2, 32, 64)):
                yield {main: normal(*shape), **more}


def first_tensor(out):
    """The main result of a model."""
    names = ("logits", "pred_masks", "last_hidden_state", "spectrogram", "waveform")
    for name in names:
        if isinstance(getattr(out, name, None), torch.Tensor):
            return getattr(out, name)
    return out[0] if isinstance(out[0], torch.Tensor) else first_tensor(out[0])


BOXES = (torch.arange(2 * 32 * 2) * 7 % 40).view(2, 32, 2)
BOXES = torch.cat([BOXES, BOXES + 40], 2)
# Types that the rule does not fit: a configuration, or fields; a class; further inputs.
CONFIGS = {**pictures.CONFIGS,
           "layoutlmv3": lambda: transformers.LayoutLMv3Config(
               hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
               vocab_size=99, max_position_embeddings=80, coordinate_size=11, shape_size=10,
               input_size=32, patch_size=8, rel_pos_bins=16, max_rel_pos=32, rel_2d_pos_bins=16,
               max_rel_2d_pos=64),
           "gemma4_audio": lambda: transformers.Gemma4AudioConfig(
               hidden_size=64, num_hidden_layers=2, num_attention_heads=4, output_proj_dims=48,
               subsampling_conv_channels=[64, 8], attention_chunk_size=6, attention_context_left=8,
               attention_logit_cap=5.0),
           # Without random numbers.
           "vits": lambda: transformers.VitsConfig(
               hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=96,
               vocab_size=99, flow_size=32, spectrogram_bins=33, upsample_initial_channel=32,
               duration_predictor_filter_channels=32, prior_encoder_num_flows=1, noise_scale=0.0,
               upsample_rates=[2, 2, 2, 2], upsample_kernel_sizes=[4, 4, 4, 4],
               use_stochastic_duration_prediction=False, noise_scale_duration=0.0)}
# Their eager code in transformers 5 takes masks of another kind than it gets.
WRONG_IF_EAGER = ("nemotron3_5_asr", "nemotron_asr_streaming", "nemotron_asr_streaming_encoder",
                  "seamless_m4t_v2")
# Parameters of all models with these values: durations that rounding cannot change.
CONSTANT = {"duration_predictor.proj.weight": 0.0, "duration_predictor.proj.bias": 0.5}
MODEL_CLASSES = {**pictures.CLASSES, "speecht5": "SpeechT5ForSpeechToText",
                 "seamless_m4t": "SeamlessM4TForSpeechToText",
                 "seamless_m4t_v2": "SeamlessM4Tv2ForSpeechToText",
                 "udop": "UdopForConditionalGeneration",
                 "pix2struct": "Pix2StructForConditionalGeneration"}
PATCHES = torch.linspace(-1, 1, 2 * 20 * 770).view(2, 20, 770)
PATCHES[..., :2] = torch.arange(2 * 20 * 2).view(2, 20, 2) % 9  # places
MORE_INPUTS = {**pictures.INPUTS,
               "pix2struct": {"flattened_patches": PATCHES},
               "nemotron_asr_streaming": {"input_features": torch.linspace(-9, 9, 48000).view(
                    2, 300, 80).sin()},
               "gemma4_audio": {"input_features": torch.linspace(-9, 9, 30720).view(
                    2, 240, 64).sin()},
               "parakeet_encoder": {"input_features": torch.linspace(-9, 9, 384000).view(
                    2, 2400, 80).sin()},  # more queries than a part of a mask has
               "layoutlmv3": {"bbox": BOXES,
                              "pixel_values": torch.linspace(-1, 1, 6144).view(2, 3, 32, 32)},
               "udop": {"bbox": BOXES / 99,
                        "pixel_values": torch.linspace(-1, 1, 6144).view(2, 3, 32, 32)}}


def build(kind, **fields):
    """A small base model of a type, and inputs that it computes. fields: of its configuration.
    Raises ValueError if there are none."""
    name = MODEL_CLASSES.get(kind) or MODEL_MAPPING_NAMES[kind]
    model_class = getattr(transformers, name if isinstance(name, str) else name[0])
    config = CONFIGS[kind]() if kind in CONFIGS else shrink(
        getattr(transformers, CONFIG_MAPPING_NAMES[kind])())
    for name, value in fields.items():
        setattr(config, name, value)
    own = "sdpa" if kind in WRONG_IF_EAGER and model_class._supports_sdpa else "eager"
    with torch.device("meta"):
        empty = model_class._from_config(copy.deepcopy(config), attn_implementation=own)
    count = sum(p.numel() for p in empty.parameters())
    if count > MOST_PARAMETERS:
        raise ValueError(f"{count / 1e6:.0f} million parameters after shrinking")
    torch.manual_seed(0)
    model = model_class._from_config(config, attn_implementation=own).eval()
    with torch.no_grad():
        for path, x in model.named_parameters():
            if not x.is_floating_point():
                continue
            if path in CONSTANT:
                x.fill_(CONSTANT[path])
            elif POSITIONS.search(path):  # large enough for a term that is left out to show
                x.normal_(0, 0.5)
            elif ATTENTION.search(path) and x.dim() == 2:
                x.normal_(0, 1 / x.size(1) ** 0.5)
            elif not bool(torch.isfinite(x).all()) or not bool(x.any()):
                x.normal_(0, 0.05)
    error = None
    for inputs in candidates(model.main_input_name):
        inputs = {**inputs, **MORE_INPUTS.get(kind, {})}
        try:
            with torch.no_grad():
                first_tensor(model(**inputs))
            return model, inputs
        except TimeoutError:
            raise
        except Exception as own:  # of any model's code
            error = own
    raise ValueError(f"no inputs: {' '.join(str(error).split())[:120]}")


def outcome(kind):
    import sextant.transformers as ours
    try:
        model, inputs = build(kind)
    except TimeoutError:
        raise
    except Exception as error:
        return f"not built: {' '.join(str(error).split())[:120]}"
    def result():
        torch.manual_seed(0)  # some draw the patches that they hide
        return first_tensor(model(**inputs))
    with torch.no_grad():
        before = result()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours.accelerate(model)
        except ours.ModelError as error:
            return f"refused: {' '.join(str(error).split())[:300]}"
        try:
            after = result()
        except Exception as error:
            return f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        size = max(before.abs().max().item(), 1e-3)
        difference = (before - after).abs().max().item() / size
        if not difference < 1e-4:
            return f"FAILED: differs by {difference:.1e}"
        left = ours.served(model).left
        ours.restore(model)
        if not torch.equal(result(), before):
            return "FAILED: restore() gives another result"
    return f"partly: {', '.join(sorted({x.kind for x in left}))}" if left else "equal"


def alarm(*_):
    raise TimeoutError("too long")


def main():
    signal.signal(signal.SIGALRM, alarm)
    counts = {}
    for kind in sys.argv[1:] or sorted({*MODEL_MAPPING_NAMES, *MODEL_CLASSES}):
        signal.alarm(60)
        try:
            text = outcome(kind)
        except TimeoutError:
            text = "not built: it takes more than a minute"
        signal.alarm(0)
        word = text.split(":")[0]
        counts[word] = counts.get(word, 0) + 1
        print(f"{kind}: {text}", flush=True)
    print(", ".join(f"{word} {n}" for word, n in sorted(counts.items())))
    sys.exit(1 if counts.get("FAILED") else 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    main()
