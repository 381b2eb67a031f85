"""Small models of transformers, with random weights, for the tests of sextant.doctor."""

import importlib
import os
import warnings

warnings.simplefilter("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import package  # noqa: F401 pylint: disable=unused-import,wrong-import-position
import torch  # pylint: disable=wrong-import-position
import transformers  # pylint: disable=wrong-import-position

from sextant.doctor import subject  # pylint: disable=wrong-import-position

torch.set_num_threads(1)
VERSION_5 = int(transformers.__version__.split(".")[0]) >= 5
DEPTH = 4
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}


def rope(base, **scaling):
    """Fields of a rotary setting, in the schema of the installed version."""
    if VERSION_5:
        return {"rope_parameters": {"rope_type": "default", "rope_theta": base, **scaling}}
    return {"rope_theta": base, "rope_scaling": scaling or None}


# Name -> model type and changed fields.
MODELS = {
    "llama": ("llama", {**rope(10000.0), "max_position_embeddings": 32768}),
    "llama-head": ("llama", {**rope(10000.0), "max_position_embeddings": 32768}),  # with a head
    "llama-yarn": ("llama", {**rope(10000.0, **YARN), "max_position_embeddings": 32768}),
    "llama-3": ("llama", {**rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                 high_freq_factor=4.0, original_max_position_embeddings=8192),
                          "max_position_embeddings": 65536}),
    "qwen3": ("qwen3", {**rope(1000000.0), "max_position_embeddings": 40960}),
    "llama-grouped": ("llama", {**rope(10000.0), "num_key_value_heads": 8,
                                "max_position_embeddings": 32768}),
    "mistral-8": ("mistral", {**rope(10000.0), "sliding_window": 8}),
    "gemma2": ("gemma2", {}),
    "llama4": ("llama4_text", {"num_local_experts": 2, "attention_chunk_size": 32}),
    "mistral": ("mistral", {**rope(10000.0), "sliding_window": 4096}),
    "gemma3": ("gemma3_text", {"query_pre_attn_scalar": 144, "sliding_window": 512,
                               "num_hidden_layers": 6}),
    "gpt_oss": ("gpt_oss", {}),
    "smollm3": ("smollm3", {"max_position_embeddings": 32768}),
    "cohere2": ("cohere2", {}),
    "phi3": ("phi3", {"partial_rotary_factor": 0.5, "max_position_embeddings": 32768,
                      **(rope(10000.0, partial_rotary_factor=0.5) if VERSION_5 else {})}),
    "deepseek_v3": ("deepseek_v3", {**rope(10000.0, **YARN, mscale=1.0, mscale_all_dim=1.0),
                                    "max_position_embeddings": 32768}),
    "gpt_neox": ("gpt_neox", {"max_position_embeddings": 32768}),
    "olmo2": ("olmo2", {**rope(500000.0), "max_position_embeddings": 32768}),
}
if VERSION_5:  # in 4.57 it has an attention of its own
    MODELS["modernbert"] = ("modernbert", {})
# Models that only transformers' eager function computes; 4.57 chooses sdpa, which drops a softcap.
EAGER = {"gemma2"}


def config_of(name):
    """The small configuration of a model."""
    kind, changes = MODELS[name]
    default = transformers.AutoConfig.for_model(kind)
    fields = {**default.to_dict(), "num_hidden_layers": DEPTH, **changes}
    layers = fields["num_hidden_layers"]
    for field, value in fields.items():
        if isinstance(value, list) and len(value) > layers and field in ("layer_types",
                                                                        "no_rope_layers"):
            fields[field] = value[:layers]
    return subject.shrunk(type(default).from_dict(fields))


def build(name):
    """A model in float32, in evaluation mode."""
    model = subject.build(config_of(name), trust_remote_code=False)
    if name.endswith("-head"):
        model = transformers.AutoModelForCausalLM.from_config(model.config).eval()
    if name in EAGER:
        model.config._attn_implementation = "eager"
    return model


def modeling_of(model):
    """The module of transformers with the model's code."""
    return importlib.import_module(type(model).__module__)
