"""Folders of transformers.models, their rotary classes, and the configurations of these
classes."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Iterator

ROTARY_CLASS = re.compile(r"^class \w*(Rotary|RoPE|Rope)\w*\(", re.MULTILINE)
ROTARY_NAME = re.compile(r"Rotary|Ro[Pp][Ee](Position|Embedding)|RoPE")
ATTENTION_NAME = re.compile(r"Attention|Attn|MLA$")
# Rotary classes for images, audio and time series, by the name of the class or its configuration.
OTHER_SENSES = re.compile(
    r"Vision|Audio|ViT|Video|Image|DiT|Conformer|Patch|Spatial|DINO|Dinov|Sam\d|Codec|LoFTR"
    r"|Tokenizer|Encoder(?=Rotary)")

# Kind of layers (empty: all) -> the frequencies of the pairs, and the gain of cos and sin.
Frequencies = dict[str, tuple[list[float], float]]


@functools.cache
def data() -> dict[str, Any]:
    """The content of tests/audit/models.json: values that default configurations lack, and other
    exceptions."""
    root = pathlib.Path(__file__).resolve().parents[3]
    return json.loads((root / "tests/audit/models.json").read_text())


def needed_values(model_type: str) -> dict[str, Any]:
    return data()["needed"].get(model_type, {}).get("values", {})


def models_root() -> pathlib.Path:
    return pathlib.Path(list(importlib.import_module("transformers.models").__path__)[0])


def sources_of(folder: str, prefix: str = "modeling_") -> list[pathlib.Path]:
    return sorted((models_root() / folder).glob(f"{prefix}*.py"))


def rotary_folders() -> list[str]:
    """The folders with a class named ...Rotary... or ...RoPE..."""
    return sorted(folder.name for folder in models_root().iterdir() if folder.is_dir()
                  and any(ROTARY_CLASS.search(f.read_text()) for f in sources_of(folder.name)))


def modules_of(folder: str, prefix: str) -> list[ModuleType]:
    package = importlib.import_module(f"transformers.models.{folder}")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith(prefix)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def classes_of(module: ModuleType, base: type) -> list[type]:
    return [c for _, c in inspect.getmembers(module, inspect.isclass)
            if c.__module__ == module.__name__ and issubclass(c, base)]


def is_config(kind: Any) -> bool:
    from transformers import PreTrainedConfig
    return inspect.isclass(kind) and issubclass(kind, PreTrainedConfig) \
        and kind is not PreTrainedConfig


def config_of(rotary: type, modeling: ModuleType) -> type | None:
    """The configuration class in the constructor's signature of a rotary class, or None."""
    parameter = inspect.signature(rotary.__init__).parameters.get("config")
    if parameter is None or parameter.annotation is inspect.Parameter.empty:
        return None
    for kind in getattr(parameter.annotation, "__args__", [parameter.annotation]):
        if isinstance(kind, str):
            kind = getattr(modeling, kind.split(".")[-1], None)
        if is_config(kind):
            return kind
    return None


def is_of_text(folder: str, rotary: type, config_class: type | None) -> bool:
    if folder in data()["not_text"]:
        return False
    name = rotary.__name__
    if OTHER_SENSES.search(name) and "Text" not in name:
        return False
    config = config_class.__name__ if config_class else ""
    return "Text" in config or not re.search(r"Vision|Audio", config)


@dataclass(frozen=True)
class RotaryClass:
    """A rotary class, with its configuration class and its module."""

    rotary: type
    config_class: type | None
    modeling: ModuleType


def rotary_classes(folder: str) -> Iterator[tuple[RotaryClass, bool]]:
    """The rotary classes of a folder, each with whether it is for text."""
    import torch
    for modeling in modules_of(folder, "modeling_"):
        for rotary in classes_of(modeling, torch.nn.Module):
            name = rotary.__name__
            if ROTARY_NAME.search(name) and not ATTENTION_NAME.search(name):
                config_class = config_of(rotary, modeling)
                yield (RotaryClass(rotary, config_class, modeling),
                       is_of_text(folder, rotary, config_class))


def frequencies_of(rotary: Any) -> Frequencies:
    """The frequencies and gains in the buffers of a rotary module, by kind of layer."""
    import torch
    found: Frequencies = {}
    tensors = {**dict(rotary.named_buffers()),
               **{k: v for k, v in vars(rotary).items() if isinstance(v, torch.Tensor)}}
    for name, tensor in tensors.items():
        match = re.fullmatch(r"(?:(\w+)_)?inv_freq", name)
        if not match or "original" in name or "long_inv" in name:
            continue
        kind = match[1] or ""
        factor = getattr(rotary, f"{kind}_attention_scaling" if kind else "attention_scaling", None)
        factor = factor if factor is not None else getattr(rotary, "attention_scaling", 1.0)
        factor = factor.get(kind, 1.0) if isinstance(factor, dict) else factor
        found[kind] = (tensor.detach().double().flatten().tolist(), float(factor))
    return found


def build(rotary: type, config_class: type) -> tuple[Any, Frequencies]:
    """The default configuration, or the part of it that the rotary class accepts, and its
    frequencies."""
    config = config_class()
    try:
        return config, frequencies_of(rotary(config))
    except (AttributeError, TypeError) as error:
        names = sorted(getattr(config_class, "sub_configs", None) or {},
                       key=lambda n: ("text" not in n, "decoder" not in n))
        for name in names:
            inner = getattr(config, name, None)
            if OTHER_SENSES.search(type(inner).__name__):
                continue
            try:
                return inner, frequencies_of(rotary(inner))
            except Exception:  # pylint: disable=broad-except
                continue
        raise error


def wholes_of(folder: str, config_class: type) -> list[tuple[type, str]]:
    """The composite configuration classes of the folder that contain this one, each with the name
    of the member."""
    found = []
    for module in modules_of(folder, "configuration_"):
        for whole in filter(is_config, vars(module).values()):
            parts = getattr(whole, "sub_configs", None) or {}
            names = [name for name, kind in parts.items() if kind is config_class]
            if names and whole is not config_class and whole.__module__ == module.__name__:
                found.append((whole, names[0]))
    return found
