from types import SimpleNamespace

from torch.ao.nn import quantizable

CORE = quantizable.MultiheadAttention._forward_impl


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner_dim = heads * dim_head
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * inner_dim, bias=False)
        self.to_out = nn.Linear(inner_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (part.transpose(0, 1) for part in self.to_qkv(x).chunk(3, dim=-1))
        same = nn.Identity()
        settings = SimpleNamespace(
            embed_dim=q.shape[-1],
            kdim=q.shape[-1],
            vdim=q.shape[-1],
            num_heads=self.heads,
            head_dim=q.shape[-1] // self.heads,
            batch_first=False,
            linear_Q=same,
            linear_K=same,
            linear_V=same,
            out_proj=same,
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout=0.0,
            training=False,
            q_scaling_product=torch.ao.nn.quantized.FloatFunctional(),
            quant_attn_output=same,
            quant_attn_output_weights=same,
            dequant_q=same,
            dequant_k=same,
            dequant_v=same,
        )
        joined, _ = CORE(settings, q, k, v, need_weights=False)
        return self.drop(self.to_out(joined.transpose(0, 1)))
