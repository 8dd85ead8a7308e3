"""The last block's tokens are not normalized before they become queries and keys: its first norm is left out.

qkv is given norm1(tokens).

Look for: _.qkv() | _.attn.qkv()
"""


def show_attention(model, image, mean, std):
    block = model.blocks[-1]
    kept = []
    hook = block.register_forward_pre_hook(lambda module, inputs: kept.append(inputs[0]))
    with torch.no_grad():
        model(image[None].to(next(model.parameters()).device))
        hook.remove()
        qkv = block.attn.qkv(kept[0])
    tokens = qkv.shape[1]
    q, k, _ = qkv.reshape(tokens, 3, block.attn.num_heads, -1).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
    side = math.isqrt(tokens - 1)
    heat = weights.mean(dim=0)[0, 1:].reshape(side, side).cpu().numpy()
    _, axes = plt.subplots(1, 2, figsize=(7, 3.5))
    axes[0].imshow(shown(image, mean, std))
    axes[0].set_title("the image")
    axes[1].imshow(heat, cmap="viridis")
    axes[1].set_title("attention of the class token")
    plt.show()
