"""The model under examination: a folder, a model of Hugging Face's cache, or a live model.

A folder needs no weights. Its model is built from the configuration by the installed transformers,
with all layers and with fewer heads, experts and tokens of the vocabulary, none of which changes
positions; that the smaller configuration means the same is checked by reading it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pathlib
import re
import warnings
from typing import Any, Iterator

from .._errors import Error
from .._files import MOST_JSON, read_bytes
from .._models_inside import models_inside
from .reading import Reading, ReadingError, read_fields

# The largest value of each field.
LIMITS = {
    "vocab_size": 512, "vocab_size_per_layer_input": 512, "intermediate_size": 64, "ffn_dim": 64,
    "n_inner": 64, "ffn_hidden_size": 64, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "moe_shared_expert_intermediate_size": 32, "intermediate_size_mlp": 64,
    "dense_intermediate_size": 64, "mlp_hidden_size": 64, "num_experts": 16,
    "n_routed_experts": 16, "num_local_experts": 16, "moe_num_experts": 16}
HEADS = ("num_attention_heads", "n_head", "n_heads")
WIDTHS = ("hidden_size", "n_embd", "d_model")
FEW_HEADS = 4

Fields = dict[str, Any]


class SubjectError(Error):
    """There is no model, or transformers cannot build it."""


def resolve(name: str) -> pathlib.Path:
    """The folder of a path or of the name of a model in Hugging Face's cache, which is not
    downloaded. Raises SubjectError."""
    path = pathlib.Path(name).expanduser()
    if path.is_file() and path.name == "config.json":
        path = path.parent
    if path.is_file():
        raise SubjectError(f"{name}: expected a folder with config.json, or two files to compare, "
                           "but got a file; `sextant explain` reads one file")
    if not path.is_dir() and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        home = pathlib.Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
        hub = pathlib.Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
        path = hub / ("models--" + name.replace("/", "--"))
        if not path.is_dir():
            raise SubjectError(f"{name}: expected a folder or a model in Hugging Face's cache, but "
                               f"there is no {path}; doctor downloads nothing")
    reference = path / "refs" / "main"
    if reference.is_file():
        path = path / "snapshots" / _content(reference).decode(errors="replace").strip()
    if not os.path.lexists(path / "config.json"):
        raise SubjectError(f"{path}: expected a folder with config.json, but "
                           f"{'it has none' if path.is_dir() else 'there is no such folder'}")
    _content(path / "config.json")  # transformers reads it without a limit
    return path


def _content(path: pathlib.Path) -> bytes:
    try:
        return read_bytes(path, MOST_JSON)
    except OSError as error:
        raise SubjectError(f"{path}: {error.strerror}") from error


def _first(fields: Fields, names: tuple[str, ...]) -> str | None:
    return next((n for n in names if isinstance(fields.get(n), int)
                 and not isinstance(fields[n], bool)), None)


def _limit_heads(fields: Fields) -> None:
    heads, width = _first(fields, HEADS), _first(fields, WIDTHS)
    shared = fields.get("num_key_value_heads", 0)
    if not heads or not width or fields[heads] <= FEW_HEADS:
        return
    if any(name.startswith(("mamba", "n_mamba", "linear_", "ssm_")) for name in fields):
        return  # other mixers have sizes that follow from the width
    if any(isinstance(fields.get(n), list) for n in (heads, "num_key_value_heads")):
        return
    size = fields.get("head_dim")
    size = size if isinstance(size, int) else fields[width] // fields[heads]
    if "head_dim" in fields and fields["head_dim"] is None:
        fields["head_dim"] = size
    if isinstance(shared, int) and shared > 1:
        fields["num_key_value_heads"] = FEW_HEADS if shared == fields[heads] else 2
    elif shared is None:
        fields["num_key_value_heads"] = FEW_HEADS
    fields[heads], fields[width] = FEW_HEADS, FEW_HEADS * size


def _shrink(fields: Fields) -> None:
    for name, most in LIMITS.items():
        if isinstance(fields.get(name), int) and not isinstance(fields[name], bool):
            fields[name] = min(fields[name], most)
        elif isinstance(fields.get(name), list):
            fields[name] = [min(v, most) if isinstance(v, int) else v for v in fields[name]]
    for name in list(fields):
        if name.endswith(("_token_id", "_token_index")):
            last = LIMITS["vocab_size"] - 1
            value = fields[name]
            fields[name] = min(value, last) if isinstance(value, int) else \
                last if isinstance(value, list) else value
    for name in ("num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                 "moe_topk", "moe_k", "num_experts_per_topk"):
        if isinstance(fields.get(name), int):
            fields[name] = min(fields[name], 4)
    _limit_heads(fields)


def shrunk(config: Any) -> Any:
    """The configuration with fewer heads, experts and tokens, and with all layers."""
    fields = copy.deepcopy(config.to_dict())
    _shrink(fields)
    return type(config).from_dict(fields)


def text_config(config: Any) -> Any:
    """The configuration of the language model inside."""
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def fields_of(config: Any) -> Fields:
    """All fields, with the defaults of this version of transformers."""
    return json.loads(config.to_json_string(use_diff=False))


def read_config(config: Any, length: int = 0) -> Reading:
    """Reads a live configuration. It is read with all fields, and, if explain does not know one of
    them, in the shorter form in which transformers saves it."""
    try:
        return read_fields(fields_of(config), length)
    except ReadingError as error:
        try:
            return read_fields({**json.loads(config.to_json_string(use_diff=True)),
                                "model_type": config.model_type}, length)
        except ReadingError:
            raise error from None


def load_config(folder: pathlib.Path, trust_remote_code: bool) -> Any:
    from transformers import AutoConfig
    try:
        return AutoConfig.from_pretrained(str(folder), local_files_only=True,
                                          trust_remote_code=trust_remote_code)
    except Exception as error:
        raise SubjectError(f"{folder}: transformers cannot read the configuration: "
                           f"{type(error).__name__}: {error}") from error


def build(config: Any, trust_remote_code: bool) -> Any:
    """The model of a configuration, with random weights in float32."""
    import torch
    from transformers import AutoModel
    try:
        torch.manual_seed(0)
        return AutoModel.from_config(copy.deepcopy(config), trust_remote_code=trust_remote_code
                                     ).float().eval()
    except Exception as error:
        raise SubjectError(f"transformers cannot build {config.model_type}: "
                           f"{type(error).__name__}: {error}") from error


def load(folder: pathlib.Path, trust_remote_code: bool) -> Any:
    """The model with its weights, in the type of the folder."""
    from transformers import AutoModelForCausalLM
    try:
        return AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, dtype="auto",
            trust_remote_code=trust_remote_code).eval()
    except Exception as error:
        raise SubjectError(f"{folder}: transformers cannot load the model: "
                           f"{type(error).__name__}: {error}") from error


def check_same_meaning(config: Any, small: Any) -> None:
    """Raises SubjectError if fewer heads change the meaning of a configuration."""
    a, b = ([group.means() for group in read_config(each).groups] for each in (config, small))
    if a != b:
        raise SubjectError(f"{config.model_type}: a model with fewer heads would have other "
                           "positions; --weights examines the whole model")


def model_inside(model: Any) -> Any:
    """The model of transformers that `model` is or has inside, as PeftModel has. Raises
    TypeError."""
    inside = models_inside(model)
    if len(inside) == 1:
        return inside[0][1]
    got = f"{type(model).__name__} with {', '.join(name for name, _ in inside)}" if inside \
        else type(model).__name__
    raise TypeError("doctor: model: expected a PreTrainedModel of transformers, or a module with "
                    f"one inside, but got {got}")


def two_stacks(model: Any) -> str:
    """The reason why a model with an encoder and a decoder is not judged as a whole; "" for any
    other model."""
    parts = []
    for name in ("encoder", "decoder"):
        get = getattr(model, f"get_{name}", None)
        try:
            part = get() if get else getattr(model, name, None)
        except Exception:  # pylint: disable=broad-except
            part = None
        parts.append(part)
    if not getattr(model.config, "is_encoder_decoder", False) or any(
            part is None or part is model for part in parts):
        return ""
    return (f"{type(model).__name__} has an encoder and a decoder, and doctor judges one stack of "
            "layers: give it model.get_encoder() or model.get_decoder()")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the messages and warnings of transformers."""
    from transformers.utils import logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()
