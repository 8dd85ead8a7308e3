"""Decorators, derived classes and a single-dispatch function register what is looked up by name.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

from functools import singledispatch

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)


class Registry(dict):
    def __call__(self, name):
        def register(function):
            self[name] = function
            return function

        return register


OPTIMIZERS, MODELS = map(lambda kind: kind(), (Registry, Registry))
RATE = 0.1


@OPTIMIZERS("sgd")
def descent(parameters):
    return optim.SGD(parameters, lr=RATE)


class Schedule:
    known = {}

    def __init_subclass__(cls, name):
        Schedule.known[name] = cls


class Short(Schedule, name="short"):
    epochs = 2


@singledispatch
def on_device(value):
    raise TypeError(type(value))


@on_device.register(nn.Module)
def _(value):
    return value.to("cpu")


net = on_device(ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8))
optimizer = OPTIMIZERS["sgd"](net.parameters())
for epoch in range(Schedule.known["short"].epochs):
    train_epoch(net, optimizer, train_loader, [])
torch.save(net.state_dict(), "400101204_Lab8_Homework.pth")
