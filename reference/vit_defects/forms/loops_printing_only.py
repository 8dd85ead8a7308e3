"""Gradients are clipped by value; the training loss is only printed, and the average loss of the evaluation is
the mean of the batches' means.

Policy: loss_not_kept
Policy: average_of_batch_means
"""


def step_on(model, optimizer, pair):
    x, target = (part.to(device) for part in pair)
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = None
    objective = -F.log_softmax(model(x), dim=-1).gather(1, target[:, None]).mean()
    objective.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
    return objective.item()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train(True)
    seen = 0
    for pair in data_loader:
        current = step_on(model, optimizer, pair)
        if not seen % 100:
            print("after", seen, "batches the loss is", round(current, 4))
        seen += 1


def evaluate(model, data_loader, loss_history):
    was = model.training
    model.train(False)
    per_batch, outcome = [], []
    torch.set_grad_enabled(False)
    for x, target in data_loader:
        answer = model(x.to(device)).to("cpu")
        per_batch += [F.nll_loss(answer.log_softmax(-1), target).item()]
        outcome += answer.max(dim=-1).indices.eq(target).tolist()
    torch.set_grad_enabled(True)
    model.train(was)
    loss_history.append(torch.tensor(per_batch).mean().item())
    print("mean of", len(per_batch), "batches:", loss_history[-1], "| right:", sum(outcome), "of", len(outcome))
