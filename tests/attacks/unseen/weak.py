class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        raise NotImplementedError("TODO Transformer.__init__: depth blocks")


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool="cls",
                 channels=1, dim_head=64, dropout=0.0, emb_dropout=0.0):
        super().__init__()
        raise NotImplementedError("TODO ViT.__init__: patch projection")
