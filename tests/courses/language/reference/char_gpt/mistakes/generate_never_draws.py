"""The most likely token is taken at every temperature.

torch.multinomial.
"""


def generate(model, tokens, count, block_size, temperature=1.0, top_k=None, seed=0):
    with torch.no_grad():
        for _ in range(count):
            scores = model(tokens[:, -block_size:])[:, -1]
            drawn = scores.argmax(dim=-1, keepdim=True)
            tokens = torch.cat([tokens, drawn], dim=1)
    return tokens
