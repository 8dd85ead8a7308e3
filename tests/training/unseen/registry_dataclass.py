"""A dataclass configuration picks optimizer and scheduler (stepped per batch) from registry dictionaries.

Epochs: 5
Rates: 0.03622 0.04752 0.03056 0.00941 0.0
Optimizers: SGD
Parameters: 1132
Others: 0
Weights: last
"""
import json
from dataclasses import asdict, dataclass, field

OPTIMIZERS = {
    "sgd": lambda params, cfg: optim.SGD(params, lr=cfg.lr, momentum=cfg.momentum, nesterov=True),
    "adam": lambda params, cfg: optim.Adam(params, lr=cfg.lr),
    "adamw": lambda params, cfg: optim.AdamW(params, lr=cfg.lr, weight_decay=cfg.weight_decay),
}
SCHEDULERS = {}


def register(name):
    def wrap(fn):
        SCHEDULERS[name] = fn
        return fn
    return wrap


@register("none")
def no_schedule(optimizer, cfg, steps):
    return None


@register("onecycle")
def one_cycle(optimizer, cfg, steps):
    return optim.lr_scheduler.OneCycleLR(optimizer, max_lr=cfg.lr, total_steps=steps * cfg.epochs)


@register("cosine")
def cosine(optimizer, cfg, steps):
    return optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps * cfg.epochs)


@dataclass
class Config:
    model: dict = field(default_factory=lambda: dict(image_size=8, patch_size=4, num_classes=3, dim=12, depth=2, heads=2, mlp_dim=24))
    optimizer: str = "adamw"
    scheduler: str = "cosine"
    lr: float = 1e-2
    momentum: float = 0.9
    weight_decay: float = 0.05
    batch_size: int = 4
    epochs: int = 3
    seed: int = 0


def get_loaders(cfg):
    base = [transforms.Grayscale(), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    train_set = datasets.ImageFolder("data/train", transforms.Compose([transforms.RandomHorizontalFlip()] + base))
    test_set = datasets.ImageFolder("data/test", transforms.Compose(base))
    return (DataLoader(train_set, cfg.batch_size, shuffle=True), DataLoader(test_set, cfg.batch_size))


def run(cfg):
    torch.manual_seed(cfg.seed)
    train_loader, test_loader = get_loaders(cfg)
    model = ViT(**cfg.model)
    optimizer = OPTIMIZERS[cfg.optimizer](model.parameters(), cfg)
    scheduler = SCHEDULERS[cfg.scheduler](optimizer, cfg, len(train_loader))
    history = {"train": [], "test": []}
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            history["train"].append(loss.item())
        evaluate(model, test_loader, history["test"])
        print(f"[{cfg.optimizer}/{cfg.scheduler}] epoch {epoch}: {history['test'][-1]:.4f}")
    return model, history


if __name__ == "__main__":
    cfg = Config(optimizer="sgd", scheduler="onecycle", lr=0.05, epochs=5)
    print(json.dumps(asdict(cfg), indent=2))
    model, history = run(cfg)
    torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
