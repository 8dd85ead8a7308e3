"""Layers in a tuple, composed by functools.reduce, and a state without repetition."""

import functools


class Network:
    def __init__(self, sizes, seed=0):
        made = []
        for i in range(1, len(sizes)):
            made.append(Linear(sizes[i - 1], sizes[i], seed=seed * 100 + i))
            if i < len(sizes) - 1:
                made.extend((BatchNorm(sizes[i]), ReLU()))
        self.layers = tuple(made)

    def forward(self, x, training=True):
        return functools.reduce(lambda value, layer: layer.forward(value, training=training), self.layers, x)

    def backward(self, upstream):
        return functools.reduce(lambda value, layer: layer.backward(value), self.layers[::-1], upstream)

    def parameters(self):
        return sum((list(layer.parameters()) for layer in self.layers), [])

    def gradients(self):
        return sum((list(layer.gradients()) for layer in self.layers), [])

    def state(self):
        running = []
        for layer in self.layers:
            if isinstance(layer, BatchNorm):
                running += [layer.running_mean, layer.running_variance]
        return running + self.parameters()
