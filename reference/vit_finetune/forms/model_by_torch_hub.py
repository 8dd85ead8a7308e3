"""The weights by torch.hub, which finds the provided file in its read-only cache.
"""


def build_model(num_classes):
    weights = torch.hub.load_state_dict_from_url("https://example.org/models/tiny_vit.pth", weights_only=True)
    model = VisionTransformer(num_classes)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and all(name.startswith("head.") for name in missing)
    return model
