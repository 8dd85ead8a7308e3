"""A progress bar, a criterion and a schedule of one's own, clipping; an evaluation that returns both numbers."""

from tqdm import tqdm

criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    running = 0.0
    bar = tqdm(enumerate(data_loader), total=len(data_loader), desc="train")
    for step, batch in bar:
        x, y = batch[0].to(device), batch[1].to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        running += loss.item()
        bar.set_postfix(loss=loss.item())
        if step % 100 == 0:
            loss_history.append(loss.item())
    return running / len(data_loader)


@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    model.eval()
    losses, hits, total = [], 0, 0
    for x, y in data_loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        losses.append(criterion(out, y).item() * y.size(0))
        hits += int((out.argmax(-1) == y).sum())
        total += y.size(0)
    loss_history.append(sum(losses) / total)
    accuracy = hits / total
    print(f"acc={accuracy * 100:.1f}%")
    return loss_history[-1], accuracy
