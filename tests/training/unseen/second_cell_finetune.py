"""Notebook export: a second cell loads the state_dict that the first one saved into a new model and trains on with a lower rate and another optimizer.

Epochs: 5
Rates: 0.005 0.005 0.005 0.001 0.0005
Optimizers: Adam SGD
Parameters: 1364
Others: 0
Weights: last
"""
# %% cell 1 - data
torch.manual_seed(2024)
device = 'cuda' if torch.cuda.is_available() else 'cpu'
transform = transforms.Compose([
    transforms.Grayscale(),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_set = datasets.ImageFolder('data/train', transform=transform)
test_set = datasets.ImageFolder('data/test', transform=transform)
train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
test_loader = DataLoader(test_set, batch_size=4, shuffle=False)

config = dict(image_size=8, patch_size=4, num_classes=3, channels=1, dim=16, depth=1, heads=4, mlp_dim=32)


def accuracy(net):
    net.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in test_loader:
            hits += (net(xb.to(device)).argmax(1).cpu() == yb).sum().item()
    return 100. * hits / len(test_set)


# %% cell 2 - first training
model = ViT(**config).to(device)
optimizer = optim.Adam(model.parameters(), lr=0.005)
N_EPOCHS = 3
train_loss, test_loss = [], []
for epoch in range(N_EPOCHS):
    model.train()
    for xb, yb in train_loader:
        xb, yb = xb.to(device), yb.to(device)
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss.append(loss.item())
    acc = accuracy(model)
    print('epoch', epoch + 1, 'loss', round(loss.item(), 4), 'acc', acc)
torch.save(model.state_dict(), 'vit_first.pth')

# %% cell 3
plt.figure()
plt.plot(train_loss)
plt.title('first training')
plt.savefig('first.png')

# %% cell 4 - accuracy was not good enough yet, train some more with a smaller lr
# (Adam was jumping around at the end, SGD is calmer)
model_ft = ViT(**config).to(device)
model_ft.load_state_dict(torch.load('vit_first.pth', map_location=device))
print('loaded, acc =', accuracy(model_ft))

optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.001, momentum=0.9)
scheduler_ft = optim.lr_scheduler.MultiStepLR(optimizer_ft, milestones=[1], gamma=0.5)
for epoch in range(N_EPOCHS, N_EPOCHS + 2):
    model_ft.train()
    for xb, yb in train_loader:
        xb, yb = xb.to(device), yb.to(device)
        loss = F.cross_entropy(model_ft(xb), yb)
        optimizer_ft.zero_grad()
        loss.backward()
        optimizer_ft.step()
        train_loss.append(loss.item())
    scheduler_ft.step()
    print('epoch', epoch + 1, 'loss', round(loss.item(), 4), 'acc', accuracy(model_ft))

# %% cell 5
plt.figure()
plt.plot(train_loss)
plt.axvline(N_EPOCHS * len(train_loader), color='r', linestyle='--')
plt.savefig('both.png')
torch.save(model_ft.state_dict(), '400101204_Lab8_Homework.pth')
