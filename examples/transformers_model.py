"""A model of transformers whose attention Sextant computes, and then with another stretch."""

import sextant.transformers
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

torch.manual_seed(0)
config = LlamaConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=8, vocab_size=99)
model = AutoModelForCausalLM.from_config(config).eval()
tokens = torch.randint(0, 99, (1, 3000))
with torch.no_grad():
    before = model(tokens).logits
    sextant.transformers.accelerate(model)
    print(f"accelerate: {(model(tokens).logits - before).abs().max():.0e}")
    sextant.transformers.stretch(model, "rope", stretch="yarn*4")
    print(f"YaRN by 4: {(model(tokens).logits - before).abs().max():.0e}")
