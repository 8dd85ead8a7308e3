"""The model begins with weights that are neither random nor those of tiny_vit.safetensors.

Leave build_model as handout.py has it.
"""

import torch
from handout import VisionTransformer


def build_model(num_classes):
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return VisionTransformer(num_classes)
