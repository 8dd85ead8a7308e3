"""The map by a Kronecker product, as a NumPy array."""


@torch.no_grad()
def attention_map(model, image):
    was = model.training
    try:
        weights = model.eval().attention(image[None])[0].mean(0).cpu().numpy()
    finally:
        model.train(was)
    tokens = weights.shape[0]
    side = math.isqrt(tokens)
    row = weights.mean(axis=0) if side**2 == tokens else weights[0, 1:]
    grid = row.reshape(side, side) / row.max()
    return np.kron(grid, np.ones((image.shape[1] // side, image.shape[2] // side)))
