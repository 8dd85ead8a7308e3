"""Functional style: an immutable state is folded over the list of learning rates by functools.reduce; partials, no for loop over epochs, best weights carried in the state.

Epochs: 6
Rates: 0.04 0.03 0.0225 0.01688 0.01266 0.00949
Optimizers: SGD
Parameters: 1908
Others: 0
Weights: last
"""
from functools import partial, reduce
from itertools import accumulate, repeat
from operator import mul
from typing import NamedTuple

torch.manual_seed(8)


class State(NamedTuple):
    epoch: int
    history: tuple           # (train loss, test loss) of each epoch
    best_loss: float
    best_weights: dict


mean = lambda values: sum(values) / len(values)
snapshot = lambda model: {k: v.detach().clone() for k, v in model.state_dict().items()}

make_transform = partial(transforms.Compose, [
    transforms.Grayscale(1), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,)),
])
make_loader = lambda folder, **kw: DataLoader(datasets.ImageFolder(folder, make_transform()), batch_size=4, **kw)
make_model = partial(ViT, image_size=8, patch_size=4, num_classes=3, channels=1, heads=4)


def with_lr(optimizer, lr):
    [group.update(lr=lr) for group in optimizer.param_groups]
    return optimizer


def losses_of(function, *args):
    """train_epoch and evaluate append to a list; this returns it."""
    collected = []
    function(*args, collected)
    return collected


def one_epoch(model, optimizer, train_loader, test_loader, state, lr):
    train_loss = mean(losses_of(train_epoch, model, with_lr(optimizer, lr), train_loader))
    test_loss = mean(losses_of(evaluate, model, test_loader))
    print(f"epoch {state.epoch + 1}: lr {lr:.5f} train {train_loss:.4f} test {test_loss:.4f}")
    better = test_loss < state.best_loss
    return State(
        epoch=state.epoch + 1,
        history=state.history + ((train_loss, test_loss),),
        best_loss=test_loss if better else state.best_loss,
        best_weights=snapshot(model) if better else state.best_weights,
    )


model = make_model(dim=16, depth=3, mlp_dim=32)
optimizer = optim.SGD(model.parameters(), lr=0.04)
rates = list(accumulate(repeat(0.75, 5), mul, initial=0.04))      # 0.04, 0.03, ... (six epochs)

final = reduce(
    partial(one_epoch, model, optimizer, make_loader("data/train", shuffle=True), make_loader("data/test")),
    rates,
    State(epoch=0, history=(), best_loss=float("inf"), best_weights=snapshot(model)),
)

model.load_state_dict(final.best_weights)
print(f"best test loss {final.best_loss:.4f} of {final.epoch} epochs")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

train_curve, test_curve = zip(*final.history)
plt.plot(train_curve, label="train")
plt.plot(test_curve, label="test")
plt.legend()
plt.show()
