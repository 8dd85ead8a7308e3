"""Two steps a batch, as in sharpness-aware minimization, in an optimizer of the student's own.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SAM"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

class SAM(optim.SGD):
    def first(self, rho=0.05):
        self.moved = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    e = rho * p.grad / (p.grad.norm() + 1e-12)
                    with torch.no_grad():
                        p.add_(e)
                    self.moved.append((p, e))

    def back(self):
        with torch.no_grad():
            for p, e in self.moved:
                p.sub_(e)


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = SAM(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for images, labels in train_loader:
        F.cross_entropy(model(images), labels).backward()
        optimizer.first()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.back()
        optimizer.step()
        optimizer.zero_grad()
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
