"""Mixed precision: bfloat16 where PyTorch chooses it, and a gradient scaler that is off without a GPU.

Policy: losses_kept_more_often
"""

import functools

half = functools.partial(torch.autocast, dtype=torch.bfloat16)
scaler = torch.amp.GradScaler(enabled=torch.cuda.is_available())


def train_epoch(model, optimizer, data_loader, loss_history):
    kind = next(model.parameters()).device
    model.train()
    for batch, (images, labels) in enumerate(data_loader, start=1):
        optimizer.zero_grad(set_to_none=True)
        with half(kind.type):
            predicted = model(images.to(kind))
            batch_loss = nn.functional.cross_entropy(predicted, labels.to(kind))
        scaler.scale(batch_loss).backward()
        scaler.step(optimizer)
        scaler.update()
        loss_history.append(float(batch_loss))
        print("batch", batch, "of", len(data_loader), "loss", round(loss_history[-1], 3))


@torch.inference_mode()
def evaluate(model, data_loader, loss_history):
    kind = next(model.parameters()).device
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    for images, labels in data_loader:
        with half(kind.type):
            predicted = model(images.to(kind)).float().cpu()
        wrong = nn.functional.cross_entropy(predicted, labels, reduction="none")
        hits = predicted.argmax(dim=-1).eq(labels)
        sums += torch.stack([wrong.double().sum(), hits.double().sum(), torch.tensor(float(len(labels)))])
    loss_history.append(float(sums[0] / sums[2]))
    print("average loss", round(loss_history[-1], 4), "right", int(sums[1]), "of", int(sums[2]))
