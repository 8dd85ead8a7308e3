"""The map by repeating each patch's value, min-max scaled."""


def attention_map(model, image):
    mode = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image.unsqueeze(0).to(next(model.parameters()).device)).cpu()
    model.train(mode)
    mean = weights.squeeze(0).mean(0)
    side = int(round((len(mean) - 1) ** 0.5))
    if side**2 + 1 == len(mean):
        values = mean[0, 1:]
    else:
        side, values = int(round(len(mean) ** 0.5)), mean.mean(0)
    grid = values.reshape(side, side)
    low, high = grid.min(), grid.max()
    grid = (grid - low) / (high - low) if high > low else torch.ones_like(grid)
    height, width = image.shape[1] // side, image.shape[2] // side
    return grid.repeat_interleave(height, 0).repeat_interleave(width, 1)
