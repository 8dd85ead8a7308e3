"""A class that holds the model, trains and saves it.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
Validates: yes"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

class Trainer:
    def __init__(self, model, lr, train_loader, val_loader):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.optimizer = optim.SGD(model.parameters(), lr=lr)
        self.history = {"train": [], "val": []}
        self.best = float("inf")

    def step(self):
        train_epoch(self.model, self.optimizer, self.train_loader, self.history["train"])
        evaluate(self.model, self.val_loader, self.history["val"])

    def fit(self, epochs, path):
        for epoch in range(epochs):
            self.step()
            if self.history["val"][-1] < self.best:
                self.best = self.history["val"][-1]
                self.save(path)

    def save(self, path):
        torch.save(self.model.state_dict(), path)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
trainer = Trainer(model, 0.1, train_loader, test_loader)
trainer.fit(3, "400101204_Lab8_Homework.pth")
