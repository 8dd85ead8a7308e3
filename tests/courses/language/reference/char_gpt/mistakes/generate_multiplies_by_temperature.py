"""The scores are multiplied by the temperature, where they should be divided.

scores / temperature.
"""


def generate(model, tokens, count, block_size, temperature=1.0, top_k=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _ in range(count):
            scores = model(tokens[:, -block_size:])[:, -1]
            if temperature == 0:
                drawn = scores.argmax(dim=-1, keepdim=True)
            else:
                scores = scores * temperature
                if top_k is not None:
                    least = scores.topk(top_k).values[:, -1:]
                    scores = scores.masked_fill(scores < least, float("-inf"))
                drawn = torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
    return tokens
