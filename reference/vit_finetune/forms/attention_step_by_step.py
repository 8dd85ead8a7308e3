"""The attention by running the model's parts one after the other, enlarged and laid over the image.
"""

import torch.nn.functional as F


def show_attention(model, image, mean, std):
    model.eval()
    with torch.no_grad():
        x = model.patch_embed(image.unsqueeze(0))
        x = torch.cat((model.cls_token, x), 1) + model.pos_embed
        for block in model.blocks[:-1]:
            x = block(x)
        block = model.blocks[-1]
        q, k, _ = block.attn.qkv(block.norm1(x))[0].chunk(3, dim=-1)
        heads = block.attn.num_heads
        q = q.unflatten(-1, (heads, -1)).transpose(0, 1)
        k = k.unflatten(-1, (heads, -1)).transpose(0, 1)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), -1)
    row = weights[:, 0].mean(0)[1:]
    side = int(len(row) ** 0.5)
    heat = row.reshape(1, 1, side, side)
    heat = F.interpolate(heat, size=image.shape[-2:], mode="nearest")[0, 0]
    picture = (image.permute(1, 2, 0) * torch.tensor(std) + torch.tensor(mean)).clamp(0, 1)
    fig, axes = plt.subplots(1, 2)
    axes[0].imshow(picture)
    axes[1].imshow(picture)
    axes[1].imshow(heat / heat.max(), cmap="jet", alpha=0.5)
    axes[1].set_title("class token, last block")
    plt.show()
