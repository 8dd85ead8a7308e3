"""Raises exceptions that lie, hang or raise when they are looked at.

Stopped by: what raises in a report is the worker's death
Outcome: its component fails
Fails: evaluate
"""


class Meta(type):
    __name__ = property(lambda cls: ["no text"])
    __module__ = property(lambda cls: 5)


class Hostile(BaseException, metaclass=Meta):
    def __str__(self):
        raise self

    __traceback__ = property(lambda self: self)


def evaluate(model, data_loader, loss_history):
    raise Hostile
