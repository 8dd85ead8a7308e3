"""The map is the class token's column: how much the patches look at it. It should be its row: what it looks
at.

Look for: _[1:, 0] | _[:, 1:, 0]
"""


def attention_map(model, image):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(dim=0).cpu()
    model.train(was_training)
    side = math.isqrt(len(weights))
    whole = side * side == len(weights)
    row = weights.mean(dim=1) if whole else weights[1:, 0]
    grid = row.reshape(1, 1, side, side)
    grid = grid / grid.max()
    return F.interpolate(grid, size=tuple(image.shape[1:]), mode="nearest")[0, 0]
