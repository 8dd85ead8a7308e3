"""Hydra-like: a nested configuration with _target_ names, dotted overrides (also from the command line), a small multirun, then the winner for longer.

Epochs: 5
Rates: 0.02 0.02 0.01 0.01 0.005
Optimizers: Adamax
Parameters: 1908
Others: 4
Weights: last
"""
import argparse
import copy
import importlib
import json
import random

CONFIG = {
    "seed": 10,
    "epochs": 2,
    "output": "400101204_Lab8_Homework.pth",
    "data": {"train": "data/train", "test": "data/test", "batch_size": 4, "size": 8},
    "model": {"image_size": 8, "patch_size": 4, "num_classes": 3, "dim": 16, "depth": 2, "heads": 4, "mlp_dim": 32, "channels": 1},
    "optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.001, "weight_decay": 0.01},
    "scheduler": {"_target_": "torch.optim.lr_scheduler.StepLR", "step_size": 2, "gamma": 0.5},
}

MULTIRUN = [
    [],
    ["optimizer.lr=0.01"],
    ["optimizer.lr=0.01", "model.dim=32"],
    ["optimizer._target_=torch.optim.Adamax", "optimizer.lr=0.02", "model.depth=3"],
]


def override(config, assignments):
    """override(CONFIG, ["optimizer.lr=0.01"]) gives a changed copy."""
    config = copy.deepcopy(config)
    for assignment in assignments:
        path, value = assignment.split("=", 1)
        *parents, key = path.split(".")
        node = config
        for parent in parents:
            node = node[parent]
        if key not in node:
            raise KeyError(f"unknown setting {path}")
        try:
            node[key] = json.loads(value)
        except json.JSONDecodeError:
            node[key] = value
    return config


def instantiate(node, *args):
    kwargs = {k: v for k, v in node.items() if k != "_target_"}
    module, _, name = node["_target_"].rpartition(".")
    return getattr(importlib.import_module(module), name)(*args, **kwargs)


def get_loaders(cfg):
    t = transforms.Compose([
        transforms.Grayscale(1),
        transforms.Resize((cfg["size"], cfg["size"])),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ])
    return (
        DataLoader(datasets.ImageFolder(cfg["train"], t), batch_size=cfg["batch_size"], shuffle=True),
        DataLoader(datasets.ImageFolder(cfg["test"], t), batch_size=cfg["batch_size"]),
    )


def run(cfg):
    random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    train_loader, test_loader = get_loaders(cfg["data"])
    model = ViT(**cfg["model"])
    optimizer = instantiate(cfg["optimizer"], model.parameters())
    scheduler = instantiate(cfg["scheduler"], optimizer)
    history = {"train": [], "test": []}
    for epoch in range(cfg["epochs"]):
        train_epoch(model, optimizer, train_loader, history["train"])
        evaluate(model, test_loader, history["test"])
        scheduler.step()
        print(f"    epoch {epoch + 1}: test loss {history['test'][-1]:.4f}")
    return model, history


def main():
    parser = argparse.ArgumentParser(description="ViT, Lab 8")
    parser.add_argument("overrides", nargs="*", help="for example optimizer.lr=0.01")
    parser.add_argument("--final-epochs", type=int, default=5)
    args = parser.parse_args()
    base = override(CONFIG, args.overrides)

    results = []
    for number, changes in enumerate(MULTIRUN):
        print(f"run {number}: {' '.join(changes) or '(defaults)'}")
        _, history = run(override(base, changes))
        results.append((history["test"][-1], number))
    _, winner = min(results)
    print("winner: run", winner)

    final = override(base, MULTIRUN[winner] + [f"epochs={args.final_epochs}"])
    print(json.dumps(final, indent=2))
    model, history = run(final)
    torch.save(model.state_dict(), final["output"])
    with open("final_config.json", "w") as f:
        json.dump(final, f, indent=2)
    plt.plot(history["test"])
    plt.show()


if __name__ == "__main__":
    main()
