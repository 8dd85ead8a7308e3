"""attention_map leaves the model in training mode, also if it was in evaluation mode before.

Remember model.training, and restore it.
"""


def attention_map(model, image):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(dim=0).cpu()
    model.train()
    side = math.isqrt(len(weights))
    whole = side * side == len(weights)
    row = weights.mean(dim=0) if whole else weights[0, 1:]
    grid = row.reshape(1, 1, side, side)
    grid = grid / grid.max()
    return F.interpolate(grid, size=tuple(image.shape[1:]), mode="nearest")[0, 0]
