"""torch.optim.swa_utils: the averaged model is saved.
Epochs: 4
Rates: 0.1 0.1 0.05 0.05
Optimizer: SGD
Schedule: SWALR
Counted: averaged"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
swa_model = AveragedModel(model)
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=1)
for epoch in range(4):
    train_epoch(model, optimizer, train_loader, [])
    if epoch >= 1:
        swa_model.update_parameters(model)
        swa_scheduler.step()
update_bn(train_loader, swa_model)
torch.save(swa_model.module.state_dict(), "400101204_Lab8_Homework.pth")
