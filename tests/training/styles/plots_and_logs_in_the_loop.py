"""Draws, writes and logs between the epochs.

Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

from torch.utils.tensorboard import SummaryWriter
import time

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
writer = SummaryWriter("/content/runs")
log = open("log.csv", "w")
optimizer = optim.SGD(model.parameters(), lr=0.1)
train_losses = []
start = time.time()
for epoch in range(2):
    t0 = time.time()
    train_epoch(model, optimizer, train_loader, train_losses)
    writer.add_scalar("loss", train_losses[-1], epoch)
    log.write(f"{epoch},{train_losses[-1]}\n")
    plt.plot(train_losses)
    plt.savefig("/content/loss.png")
    plt.close()
    print(f"{epoch}: {time.time() - t0:.1f} s")
writer.close()
