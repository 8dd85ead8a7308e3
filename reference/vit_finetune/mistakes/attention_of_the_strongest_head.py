"""The map is that of the strongest head at each patch; it should be the mean over the heads.

weights.mean(dim=0) in place of the largest weight of the heads.

Look for: max() | amax()
"""


def show_attention(model, image, mean, std):
    attention, kept = model.blocks[-1].attn, []
    hook = attention.qkv.register_forward_hook(lambda module, inputs, output: kept.append(output))
    with torch.no_grad():
        model(image[None].to(next(model.parameters()).device))
    hook.remove()
    tokens = kept[0].shape[1]
    q, k, _ = kept[0].reshape(tokens, 3, attention.num_heads, -1).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
    side = math.isqrt(tokens - 1)
    heat = weights.amax(dim=0)[0, 1:].reshape(side, side).cpu().numpy()
    _, axes = plt.subplots(1, 2, figsize=(7, 3.5))
    axes[0].imshow(shown(image, mean, std))
    axes[0].set_title("the image")
    axes[1].imshow(heat, cmap="viridis")
    axes[1].set_title("attention of the class token")
    plt.show()
