"""After the final training (and the saving) an ablation study reuses model, optimizer, N_EPOCHS and the rest of the names.

Epochs: 5
Rates: 0.003 0.00272 0.002 0.0011 0.00038
Optimizers: Adam
Parameters: 1908
Others: 4
Weights: last
"""
torch.manual_seed(1)
transform = transforms.Compose([transforms.Grayscale(), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
train_ds = datasets.ImageFolder("data/train", transform)
test_ds = datasets.ImageFolder("data/test", transform)
train_loader = DataLoader(train_ds, batch_size=4, shuffle=True)
test_loader = DataLoader(test_ds, batch_size=4)


def get_accuracy(model, loader):
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for img, label in loader:
            correct += (model(img).argmax(dim=1) == label).sum().item()
            total += len(label)
    return correct / total


# ---------- final training ----------
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=16, depth=3, heads=4, mlp_dim=32)
optimizer = optim.Adam(model.parameters(), lr=0.003)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5, eta_min=1e-4)
N_EPOCHS = 5
train_loss_history, test_loss_history = [], []
for epoch in range(1, N_EPOCHS + 1):
    print("Epoch:", epoch)
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()

final_acc = get_accuracy(model, test_loader)
print("final accuracy", final_acc)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

# ---------- ablation: what does depth / dim / the rate do? (question 7) ----------
results = {"final (depth 3, dim 16, lr 0.003)": final_acc}
N_EPOCHS = 2
for name, depth, dim, lr in [("depth 1", 1, 16, 0.003), ("dim 4", 3, 4, 0.003), ("lr 0.1", 3, 16, 0.1)]:
    torch.manual_seed(1)
    model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=dim, depth=depth, heads=4, mlp_dim=32)
    optimizer = optim.Adam(model.parameters(), lr=lr)
    train_loss_history, test_loss_history = [], []
    for epoch in range(1, N_EPOCHS + 1):
        train_epoch(model, optimizer, train_loader, train_loss_history)
        evaluate(model, test_loader, test_loss_history)
    results[name] = get_accuracy(model, test_loader)

# SGD instead of Adam
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=16, depth=3, heads=4, mlp_dim=32)
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(N_EPOCHS):
    train_epoch(model, optimizer, train_loader, train_loss_history)
results["SGD"] = get_accuracy(model, test_loader)

for name, acc in sorted(results.items(), key=lambda item: -item[1]):
    print(f"{name:40s} {100 * acc:.1f} %")
plt.bar(range(len(results)), list(results.values()))
plt.xticks(range(len(results)), list(results), rotation=45)
plt.savefig("ablation.png")
