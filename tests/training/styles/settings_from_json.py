"""Settings are read from a JSON text into a namespace, with argparse on top of it, and main() does the rest.
Epochs: 2
Rates: 0.1 0.05
Optimizer: SGD
Schedule: StepLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

import argparse
import json
from types import SimpleNamespace

SETTINGS = json.loads('{"lr": 0.1, "epochs": 2, "model": {"image_size": 8, "patch_size": 4, "num_classes": 3, "channels": 1, "dim": 8, "depth": 1, "heads": 1, "mlp_dim": 8}}')


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=SETTINGS["lr"])
    parser.add_argument("--epochs", type=int, default=SETTINGS["epochs"])
    args, _ = parser.parse_known_args()
    return SimpleNamespace(**{**SETTINGS, **vars(args)})


def main():
    cfg = parse()
    model = ViT(**cfg.model)
    optimizer = optim.SGD(model.parameters(), lr=cfg.lr)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for epoch in range(cfg.epochs):
        train_epoch(model, optimizer, train_loader, [])
        evaluate(model, test_loader, [])
        scheduler.step()
    torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")


if __name__ == "__main__":
    main()
