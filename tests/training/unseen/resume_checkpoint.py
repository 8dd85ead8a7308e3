"""Resumes from a checkpoint dictionary if the file exists (in a fresh folder it does not), and writes it after every epoch.

Epochs: 4
Rates: 0.003 0.003 0.0003 0.0003
Optimizers: RMSprop
Parameters: 1784
Others: 0
Weights: last
"""
import os

CKPT_PATH = "checkpoint.pt"
BATCH_SIZE = 4
N_EPOCHS = 4
LR = 3e-3

torch.manual_seed(0)
tf = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
train_loader = DataLoader(datasets.ImageFolder("./data/train", tf), batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("./data/test", tf), batch_size=BATCH_SIZE)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=20, depth=1, heads=4, mlp_dim=40)
optimizer = optim.RMSprop(model.parameters(), lr=LR)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)

start_epoch = 0
train_losses, test_losses = [], []


def save_checkpoint(epoch):
    torch.save({
        "epoch": epoch + 1,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scheduler_state_dict": scheduler.state_dict(),
        "train_losses": train_losses,
        "test_losses": test_losses,
    }, CKPT_PATH)


# colab disconnects all the time, so continue where we stopped
if os.path.exists(CKPT_PATH):
    checkpoint = torch.load(CKPT_PATH)
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    start_epoch = checkpoint["epoch"]
    train_losses = checkpoint["train_losses"]
    test_losses = checkpoint["test_losses"]
    print("=> resumed from epoch", start_epoch)
else:
    print("=> no checkpoint, training from scratch")

for epoch in range(start_epoch, N_EPOCHS):
    print("Epoch:", epoch + 1)
    train_epoch(model, optimizer, train_loader, train_losses)
    evaluate(model, test_loader, test_losses)
    scheduler.step()
    save_checkpoint(epoch)

print("test losses:", test_losses)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

# check that the saved file loads
model2 = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=20, depth=1, heads=4, mlp_dim=40)
model2.load_state_dict(torch.load("400101204_Lab8_Homework.pth"))
evaluate(model2, test_loader, test_losses)
