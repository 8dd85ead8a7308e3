"""A class that builds the model, the optimizer and the schedule from a configuration, and a run over seeds.
Epochs: 2
Rates: 0.1 0.01
Optimizer: SGD
Schedule: StepLR
Others: 1"""

from dataclasses import dataclass

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)


@dataclass
class Config:
    dim: int = 8
    depth: int = 1
    lr: float = 0.1
    epochs: int = 2


class Experiment:
    def __init__(self, config, seed):
        torch.manual_seed(seed)
        self.config = config
        self.model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=config.dim,
                         depth=config.depth, heads=1, mlp_dim=8)
        self.optimizer = optim.SGD(self.model.parameters(), lr=config.lr)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.losses = []

    def run(self):
        for epoch in range(self.config.epochs):
            train_epoch(self.model, self.optimizer, train_loader, self.losses)
            self.scheduler.step()
        return self


experiments = [Experiment(Config(), seed).run() for seed in (1, 2)]
final = experiments[-1]
torch.save(final.model.state_dict(), "400101204_Lab8_Homework.pth")
