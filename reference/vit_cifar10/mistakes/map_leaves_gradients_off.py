"""Gradients are switched off and not on again: whatever trains after attention_map fails.

Use with torch.no_grad(): around the call of the model, which ends by itself.

Look for: set_grad_enabled()
"""


def attention_map(model, image):
    was_training = model.training
    model.eval()
    torch.set_grad_enabled(False)
    weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(dim=0).cpu()
    model.train(was_training)
    side = math.isqrt(len(weights))
    row = weights.mean(dim=0) if side * side == len(weights) else weights[0, 1:]
    grid = row.reshape(1, 1, side, side)
    grid = grid / grid.max()
    return F.interpolate(grid, size=tuple(image.shape[1:]), mode="nearest")[0, 0]
