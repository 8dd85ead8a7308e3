"""In several files: a study by the same `fit`, and a convolutional network that is trained in two stages."""

import torch
from loops import device, evaluate, fit, train_epoch, train_loader
from networks import ConvNet, Perceptron
from torch import optim

perceptron = fit(Perceptron(16, 3, 4, 48).to(device), epochs=5, rate=2e-3)
torch.save(perceptron.state_dict(), "400101205_Compared_perceptron.pth")

results = {}
for width in (8, 12):
    candidate = fit(ConvNet(3, 4, width).to(device), epochs=1, rate=5e-3)
    results[width] = evaluate(candidate, train_loader)
print("widths", results)

convnet = fit(ConvNet(3, 4, 16).to(device), epochs=5, rate=5e-3)
gentle = optim.AdamW(convnet.parameters(), lr=1e-3)
for _ in range(3):
    train_epoch(convnet, gentle, train_loader)
torch.save(convnet.state_dict(), "400101205_Compared_convnet.pth")
