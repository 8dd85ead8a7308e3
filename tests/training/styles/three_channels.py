"""Color images.

Epochs: 2
Rates: 0.01 0.01
Optimizer: SGD
Pixels: 3 8 8"""

tf = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
trainset = datasets.ImageFolder("data/train", transform=tf)
testset = datasets.ImageFolder("data/test", transform=tf)
train_iterator = DataLoader(trainset, batch_size=4, shuffle=True)
test_iterator = DataLoader(testset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=3, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    train_epoch(model, optimizer, train_iterator, [])
