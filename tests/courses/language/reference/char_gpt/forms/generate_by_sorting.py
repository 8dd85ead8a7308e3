"""The k most likely by sorting, drawn by Gumbel noise of a seed."""


@torch.no_grad()
def generate(model, tokens, count, block_size, temperature=1.0, top_k=None, seed=0):
    random = torch.Generator()
    random.manual_seed(seed)
    done = [tokens]
    for _ in range(count):
        logits = model(torch.cat(done, 1)[:, -block_size:])[:, -1, :]
        if top_k:
            order = logits.argsort(dim=-1, descending=True)
            logits = logits.scatter(1, order[:, top_k:], -torch.inf)
        if temperature > 0:
            noise = -torch.log(-torch.log(torch.rand(logits.shape, generator=random).clamp(1e-9, 1 - 1e-7)))
            logits = logits / temperature + noise
        done.append(logits.argmax(-1, keepdim=True))
    return torch.cat(done, 1)
