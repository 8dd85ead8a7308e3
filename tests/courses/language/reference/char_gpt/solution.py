# %% [markdown]
# # A character language model

# %%
import torch
import torch.nn.functional as F
from torch import nn


# %%
class Tokenizer:
    """Characters as numbers."""

    def __init__(self, text):
        # >>> TODO Tokenizer.__init__: the characters in alphabetical order, and size
        self.characters = sorted(set(text))
        self.size = len(self.characters)
        # <<<

    def encode(self, text):
        # >>> TODO Tokenizer.encode: a list of tokens
        return [self.characters.index(character) for character in text]
        # <<<

    def decode(self, tokens):
        # >>> TODO Tokenizer.decode: the text
        return "".join(self.characters[int(token)] for token in tokens)
        # <<<


# %%
class CausalSelfAttention(nn.Module):
    """Multi-head self-attention of x (batch, tokens, dim); no token sees those behind it."""

    def __init__(self, dim, heads):
        super().__init__()
        # >>> TODO CausalSelfAttention.__init__: the projections
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        # <<<

    def forward(self, x):
        # >>> TODO CausalSelfAttention.forward: attend to what is not behind
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (dim // self.heads) ** -0.5
        behind = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(behind, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, dim))
        # <<<


# %%
class Block(nn.Module):
    """Attention and a perceptron, each behind a norm and beside a residual connection."""

    def __init__(self, dim, heads):
        super().__init__()
        # >>> TODO Block.__init__: norms, attention and mlp
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = CausalSelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        # <<<

    def forward(self, x):
        # >>> TODO Block.forward: two residual connections
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
        # <<<


# %%
class GPT(nn.Module):
    """Scores (batch, tokens, vocabulary) of the tokens that follow tokens (batch, tokens)."""

    def __init__(self, vocabulary, block_size, dim, depth, heads):
        super().__init__()
        # >>> TODO GPT.__init__: embeddings, blocks, norm and head
        self.tokens, self.positions = nn.Embedding(vocabulary, dim), nn.Embedding(block_size, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary)
        # <<<

    def forward(self, tokens):
        # >>> TODO GPT.forward: embed, go through the blocks, and score
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(places))))
        # <<<


# %%
def next_token_loss(model, tokens):
    """The mean cross-entropy of each next token of tokens (batch, length)."""
    # >>> TODO next_token_loss: compare each score with the token that follows
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    # <<<


# %%
def generate(model, tokens, count, block_size, temperature=1.0, top_k=None, seed=0):
    """Tokens (batch, length + count), of which the last were drawn one after the other."""
    # >>> TODO generate: crop, score, draw, append
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _ in range(count):
            scores = model(tokens[:, -block_size:])[:, -1]
            if temperature == 0:
                drawn = scores.argmax(dim=-1, keepdim=True)
            else:
                scores = scores / temperature
                if top_k is not None:
                    least = scores.topk(top_k).values[:, -1:]
                    scores = scores.masked_fill(scores < least, float("-inf"))
                drawn = torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
    return tokens
    # <<<


# %%
def fit(model, tokens, epochs, batch_size, learning_rate, seed=0):
    """Train on windows (n, length); the mean loss of each epoch."""
    # >>> TODO fit: shuffle, step, and keep the losses
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    losses = []
    for _ in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(tokens), generator=generator).split(batch_size):
            loss = next_token_loss(model, tokens[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(tokens))
    return losses
    # <<<


# %% [markdown]
# ## Try it

# %%
tokenizer = Tokenizer("to be or not to be")
text = torch.tensor([tokenizer.encode("to be or not to be")])
print(generate(GPT(tokenizer.size, 8, 16, 1, 2), text[:, :4], 5, 8))
