"""A CUDA device for a torch without CUDA (tests/torch/stand_in_cuda): its memory is the host's."""

import os

import torch

import sextant

sextant.load()
torch.ops.load_library(os.environ["SEXTANT_STAND_IN_CUDA"])
torch.cuda._lazy_init = lambda: None  # expects a driver
