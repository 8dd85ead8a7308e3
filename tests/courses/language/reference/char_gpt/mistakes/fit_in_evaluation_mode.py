"""The model is trained in evaluation mode.

model.train().
"""


def fit(model, tokens, epochs, batch_size, learning_rate, seed=0):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.eval()
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
