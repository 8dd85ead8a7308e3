"""Small tools that know nothing of the assignment."""

from contextlib import contextmanager


class Meter:
    """Weighted means of several numbers."""

    def __init__(self, *names):
        self.sums = dict.fromkeys(names, 0.0)
        self.weight = 0

    def add(self, weight, **means):
        self.weight += weight
        for name, mean in means.items():
            self.sums[name] += weight * mean

    def __getitem__(self, name):
        return self.sums[name] / self.weight


class AfterEachBatch:
    """A loader that calls something when the consumer comes back for the next batch, and after the last."""

    def __init__(self, loader, action):
        self.loader, self.action = loader, action

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield batch
            self.action()


def batches_on(loader, device):
    """The batches of a loader, moved to a device."""
    for images, labels in loader:
        yield images.to(device), labels.to(device)


@contextmanager
def captured_output(module):
    """A list that holds what the module gives within the block."""
    outputs = []
    handle = module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output.detach()))
    try:
        yield outputs
    finally:
        handle.remove()


@contextmanager
def modes_kept(model):
    """Afterwards every module is in the mode it was in before."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model
    finally:
        for module, mode in modes:
            module.training = mode
