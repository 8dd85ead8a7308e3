"""A generator trains and yields what it measured; whoever iterates over it stops early and restores the best weights.
Epochs: 2
Planned: 5
Rates: 0.1 0.1
Optimizer: SGD
Validates: yes"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

import copy


def epochs_of(net, opt, most):
    for number in range(most):
        train_epoch(net, opt, train_loader, [])
        losses = []
        evaluate(net, test_loader, losses)
        yield number, losses[0]


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
best, kept = float("inf"), None
for number, loss in epochs_of(model, optimizer, 5):
    if loss < best:
        best, kept = loss, copy.deepcopy(model.state_dict())
    if number >= 1:
        break
model.load_state_dict(kept)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
