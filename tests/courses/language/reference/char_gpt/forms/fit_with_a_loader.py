"""A DataLoader, Adam with a cosine schedule, and gradient clipping."""


def fit(model, tokens, epochs, batch_size, learning_rate, seed=0):
    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(tokens, batch_size=batch_size, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    history = []
    for epoch in range(epochs):
        model.train()
        sums, count = 0.0, 0
        for batch in loader:
            optimizer.zero_grad()
            loss = next_token_loss(model, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            sums, count = sums + loss.detach() * len(batch), count + len(batch)
        history.append(float(sums) / count)
    return history
