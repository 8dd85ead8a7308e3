"""A class for one block, nn.Sequential of blocks, and a final normalization."""

from dataclasses import dataclass
from typing import Optional


@dataclass
class BlockConfig:
    dim: int
    heads: int
    dim_head: int
    mlp_dim: int
    dropout: float = 0.0
    name: Optional[str] = None


class Block(nn.Module):
    def __init__(self, cfg: BlockConfig):
        super().__init__()
        self.mlp = PreNorm(cfg.dim, FeedForward(cfg.dim, cfg.mlp_dim, dropout=cfg.dropout))
        self.attn = PreNorm(
            cfg.dim, Attention(cfg.dim, heads=cfg.heads, dim_head=cfg.dim_head, dropout=cfg.dropout)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attn(x) + x
        return self.mlp(x) + x


class Transformer(nn.Module):
    def __init__(self, dim: int, depth: int, heads: int, dim_head: int, mlp_dim: int, dropout: float = 0.0):
        super().__init__()
        cfg = BlockConfig(dim, heads, dim_head, mlp_dim, dropout)
        self.layers = nn.Sequential(*[Block(cfg) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(x))
