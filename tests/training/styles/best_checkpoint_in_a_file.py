"""Keeps the best weights in a file in a folder that is not there, and restores them.

Epochs: 4
Rates: 0.1 0.1 0.1 0.1
Optimizer: SGD
Validates: yes
Counted: of the weights that the code restored at the end"""

import os

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
CKPT = "/content/drive/MyDrive/best_model.pth"
os.makedirs(os.path.dirname(CKPT), exist_ok=True)
best = 10.0
for epoch in range(4):
    train_epoch(model, optimizer, train_loader, [])
    scores = []
    evaluate(model, test_loader, scores)
    score = float(epoch) + 0 * scores[-1]
    if score < best:
        best = score
        torch.save({"epoch": epoch, "model": model.state_dict()}, CKPT)
        print("saved")
checkpoint = torch.load(CKPT, map_location="cpu")
model.load_state_dict(checkpoint["model"])
