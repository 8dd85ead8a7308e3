"""The tokens are written into a tensor that is made at once, with a manual seed."""


def generate(model, tokens, count, block_size, temperature=1.0, top_k=None, seed=0):
    torch.manual_seed(seed)
    was_training = model.training
    model.eval()
    batch, length = tokens.shape
    whole = torch.zeros(batch, length + count, dtype=tokens.dtype)
    whole[:, :length] = tokens
    with torch.inference_mode():
        for i in range(length, length + count):
            logits = model(whole[:, max(0, i - block_size) : i])[:, -1]
            if temperature == 0:
                whole[:, i] = logits.argmax(-1)
                continue
            probabilities = (logits / temperature).softmax(-1)
            if top_k is not None:
                values, indices = probabilities.topk(top_k)
                whole[:, i] = indices.gather(1, torch.multinomial(values, 1)).squeeze(1)
            else:
                whole[:, i] = torch.multinomial(probabilities, 1).squeeze(1)
    model.train(was_training)
    return whole
