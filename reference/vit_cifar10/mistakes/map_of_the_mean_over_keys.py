"""Where there is no class token, the mean is over each row's keys: every row sums to 1, so that all patches
get the same value.

Average over the rows, the queries: how much each patch is looked at.

Look for: mean(dim=-1) | mean(dim=1) | mean(-1) | mean(1) | mean(axis=1) | mean(axis=-1)
"""


def attention_map(model, image):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(dim=0).cpu()
    model.train(was_training)
    side = math.isqrt(len(weights))
    whole = side * side == len(weights)
    row = weights.mean(dim=1) if whole else weights[0, 1:]
    grid = row.reshape(1, 1, side, side)
    grid = grid / grid.max()
    return F.interpolate(grid, size=tuple(image.shape[1:]), mode="nearest")[0, 0]
