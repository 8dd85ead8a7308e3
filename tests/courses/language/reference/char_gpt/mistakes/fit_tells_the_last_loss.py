"""The loss of an epoch is that of its last batch.

Add up loss times batch size, and divide by the number of windows.
"""


def fit(model, tokens, epochs, batch_size, learning_rate, seed=0):
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
        losses.append(loss.item())
    return losses
