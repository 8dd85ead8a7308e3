"""A quick try-out on a small Subset ("does it run at all?") comes first, then the real model from a factory that is a functools.partial (and optimizers from lambdas).

Epochs: 5
Rates: 0.00333 0.00667 0.01 0.01 0.01
Optimizers: NAdam
Parameters: 1636
Others: 1
Weights: last
"""
from functools import partial
from torch.utils.data import Subset

torch.manual_seed(3)

tfm = transforms.Compose([transforms.Grayscale(1), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
ds_train, ds_test = (datasets.ImageFolder(f"data/{split}", tfm) for split in ("train", "test"))
loader = partial(DataLoader, batch_size=4)

# factories: everything fixed except what I want to play with
make_vit = partial(ViT, image_size=8, patch_size=4, num_classes=len(ds_train.classes), channels=1, heads=4)
make_small = partial(make_vit, dim=4, depth=1, mlp_dim=8)
make_model = lambda: make_vit(dim=16, depth=2, mlp_dim=64)
make_optimizer = lambda params, lr=0.01: optim.NAdam(params, lr=lr)
warmup = lambda epoch: min(1.0, (epoch + 1) / 3)


def fit(model, optimizer, loader_train, loader_test, epochs, scheduler=None):
    tr, te = [], []
    for ep in range(epochs):
        train_epoch(model, optimizer, loader_train, tr)
        evaluate(model, loader_test, te)
        print(f"  ep {ep}  train {tr[-1]:.3f}  test {te[-1]:.3f}  lr {optimizer.param_groups[0]['lr']:.4f}")
        if scheduler is not None:
            scheduler.step()
    return tr, te


# ---- 1. does it run at all? ----
print("try-out:")
tiny = Subset(ds_train, range(0, len(ds_train), 5))     # 8 images
tiny_loader = loader(tiny, shuffle=True)
test_model = make_small()
x, y = next(iter(tiny_loader))
print("  output shape", tuple(test_model(x).shape))
assert test_model(x).shape == (len(y), 3)
tr, te = fit(test_model, optim.SGD(test_model.parameters(), lr=0.05), tiny_loader, tiny_loader, epochs=3)
print("  loss goes down:", tr[-1] < tr[0])

# ---- 2. the real thing ----
print("training:")
train_loader, test_loader = loader(ds_train, shuffle=True), loader(ds_test)
model = make_model()
print("  parameters:", sum(p.numel() for p in model.parameters()))
optimizer = make_optimizer(model.parameters())
scheduler = optim.lr_scheduler.LambdaLR(optimizer, warmup)
tr, te = fit(model, optimizer, train_loader, test_loader, epochs=5, scheduler=scheduler)

fig, (a, b) = plt.subplots(1, 2, figsize=(8, 3))
a.plot(tr); a.set_title("train loss")
b.plot(te); b.set_title("test loss")
fig.savefig("curves.png")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
