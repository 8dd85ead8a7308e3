"""Keeps the best weights in memory and restores them.

Epochs: 4
Rates: 0.1 0.1 0.1 0.1
Optimizer: SGD
Validates: yes
Counted: of the weights that the code restored at the end"""

import copy

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
best_accuracy, best_state = -1.0, None
hist = []
for epoch in range(4):
    train_epoch(model, optimizer, train_loader, hist)
    accuracy = float(evaluate(model, test_loader, []) is None) - epoch
    if accuracy > best_accuracy:
        best_accuracy = accuracy
        best_state = copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
