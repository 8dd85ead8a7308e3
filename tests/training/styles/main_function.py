"""Everything in a main function, below the guard.

Epochs: 3
Rates: 0.1 0.01 0.001
Optimizer: Adam
Schedule: ExponentialLR"""

def main():
    batch_size = 4
    tf = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
    train_set = datasets.ImageFolder("data/train", transform=tf)
    test_set = datasets.ImageFolder("data/test", transform=tf)
    trainloader = DataLoader(train_set, batch_size=batch_size, shuffle=True, num_workers=2)
    testloader = DataLoader(test_set, batch_size=batch_size, num_workers=2)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
    train_hist, test_hist = [], []
    for epoch in range(3):
        train_epoch(model, optimizer, trainloader, train_hist)
        evaluate(model, testloader, test_hist)
        scheduler.step()
    plt.plot(train_hist)
    plt.show()
    torch.save(model.state_dict(), "400101204.pth")


if __name__ == "__main__":
    main()
