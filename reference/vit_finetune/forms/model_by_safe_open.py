"""The weights are read one after the other, and copied into the model without load_state_dict.
"""

from handout import VisionTransformer
from safetensors import safe_open


def build_model(num_classes):
    model = VisionTransformer(num_classes)
    own = model.state_dict()
    with safe_open("tiny_vit.safetensors", framework="pt") as file, torch.no_grad():
        for name in file.keys():
            own[name].copy_(file.get_tensor(name))
    return model
