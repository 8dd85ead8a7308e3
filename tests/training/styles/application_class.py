"""Built, trained and saved in methods of an object of its own, before a second model that does not count.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
Others: 1"""

TRANSFORM = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])


class Application:
    def __init__(self):
        self.loader = DataLoader(
            datasets.ImageFolder("data/train", transform=TRANSFORM), batch_size=4, shuffle=True
        )
        self.losses = {}

    def train(self, name, model, epochs):
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.losses[name] = []
        for epoch in range(epochs):
            train_epoch(model, optimizer, self.loader, self.losses[name])
        torch.save(model.state_dict(), "400101204_%s.pth" % name)

    def run(self):
        sizes = dict(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, mlp_dim=8)
        self.train("Lab8_Homework", ViT(heads=1, **sizes), 3)
        self.train("two_heads", ViT(heads=2, **sizes), 1)

    @staticmethod
    def main():
        Application().run()


if __name__ == "__main__":
    Application.main()
