"""The head is that of the twenty classes of the pretraining; it should be a new one for num_classes.

Leave build_model as handout.py has it.
"""

from handout import VisionTransformer
from safetensors.torch import load_file


def build_model(num_classes):
    model = VisionTransformer(20)
    model.load_state_dict(load_file("tiny_vit.safetensors"), strict=False)
    return model
