"Small things that everything else needs, fastai fashion: short names, `store_attr`, lists with extras."
import inspect

import torch

__all__ = ["L", "store_attr", "to_device", "default_device", "noop", "params"]


def noop(x, *args, **kwargs):
    return x


def default_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def store_attr():
    "Stores all arguments of the caller (an `__init__`) as attributes of its `self`."
    frame = inspect.currentframe().f_back
    names = inspect.getargvalues(frame)
    self = names.locals["self"]
    for name in names.args:
        if name != "self":
            setattr(self, name, names.locals[name])


def to_device(b, device):
    if isinstance(b, (list, tuple)):
        return type(b)(to_device(o, device) for o in b)
    return b.to(device)


class L(list):
    "A list with `map`, `filter`, `attrgot` and `sorted`"

    def map(self, f):
        return L(f(o) for o in self)

    def filter(self, f):
        return L(o for o in self if f(o))

    def attrgot(self, k):
        return self.map(lambda o: getattr(o, k))

    def sorted(self, key):
        return L(sorted(self, key=key))


def params(m):
    return L(m.parameters())
