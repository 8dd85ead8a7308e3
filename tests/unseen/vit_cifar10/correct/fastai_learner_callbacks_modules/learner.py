"A Learner with callbacks. It knows nothing but the loop: losses, schedules and checkpoints are all callbacks."
from copy import deepcopy

import torch
from core import *
from layers import ResNet18
from sched import warmup_cosine
from torch import nn, optim

__all__ = [
    "Callback", "Learner", "TrainCB", "MetricsCB", "PredsCB", "SchedCB", "train_epoch", "evaluate", "fit",
]


class Callback:
    order = 0


class Learner:
    def __init__(self, model, loss_func, opt=None, device="cpu", cbs=()):
        store_attr()

    def __call__(self, event):
        for cb in L(self.cbs).sorted(lambda o: o.order):
            getattr(cb, event, noop)(self)

    def one_batch(self, batch):
        self.xb, self.yb = to_device(tuple(batch), self.device)
        self.preds = self.model(self.xb)
        self.loss = self.loss_func(self.preds, self.yb)
        self("after_loss")
        if self.model.training:
            self("backward")
        self("after_batch")

    def one_epoch(self, dl, train):
        self.model.train(train)
        self("before_epoch")
        with torch.set_grad_enabled(train):
            for batch in dl:
                self.one_batch(batch)
        self("after_epoch")
        return self


class TrainCB(Callback):
    def backward(self, learn):
        learn.opt.zero_grad()
        learn.loss.backward()
        learn.opt.step()


class SchedCB(Callback):
    order = TrainCB.order + 1

    def __init__(self, sched):
        store_attr()

    def backward(self, learn):
        self.sched.step()


class MetricsCB(Callback):
    "Mean loss and accuracy of an epoch, by the number of images"

    def before_epoch(self, learn):
        self.n, self.total, self.right = 0, 0.0, 0

    def after_batch(self, learn):
        bs = len(learn.yb)
        self.n += bs
        self.total += learn.loss.item() * bs
        self.right += (learn.preds.argmax(1) == learn.yb).sum().item()

    def after_epoch(self, learn):
        self.loss, self.accuracy = self.total / self.n, self.right / self.n


class PredsCB(Callback):
    def before_epoch(self, learn):
        self.preds, self.targs = L(), L()

    def after_batch(self, learn):
        self.preds.append(learn.preds.softmax(1).cpu())
        self.targs.append(learn.yb.cpu())

    def after_epoch(self, learn):
        self.preds, self.targs = torch.cat(self.preds), torch.cat(self.targs)


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    metrics = MetricsCB()
    cbs = [TrainCB(), metrics]
    if scheduler is not None:
        cbs.append(SchedCB(scheduler))
    Learner(model, criterion, optimizer, device, cbs).one_epoch(loader, train=True)
    return metrics.loss, metrics.accuracy


def evaluate(model, loader, criterion, device):
    metrics, preds = MetricsCB(), PredsCB()
    Learner(model, criterion, device=device, cbs=[metrics, preds]).one_epoch(loader, train=False)
    return dict(
        loss=metrics.loss,
        accuracy=metrics.accuracy,
        targets=preds.targs,
        predictions=preds.preds.argmax(1),
        probabilities=preds.preds,
    )


class Recorder:
    "The history; also prints a row for each epoch, as fastai does"

    names = ("train_loss", "train_accuracy", "valid_loss", "valid_accuracy")

    def __init__(self, verbose=False):
        store_attr()
        self.values = L()

    def add(self, *row):
        self.values.append(row)
        if self.verbose:
            print(f"{len(self.values):>5}", *(f"{o:>9.4f}" for o in row))

    def __getitem__(self, name):
        return [row[self.names.index(name)] for row in self.values]

    def __len__(self):
        return len(self.values)


class SaveModel:
    "Keeps a copy of the weights whenever the accuracy is better than ever"

    def __init__(self, model):
        store_attr()
        self.best, self.state = None, None

    def __call__(self, accuracy):
        if self.best is None or accuracy > self.best:
            self.best, self.state = accuracy, deepcopy(self.model.state_dict())

    def load_best(self):
        if self.state is not None:
            self.model.load_state_dict(self.state)


def splitter(model):
    "No decay for norms, biases, positions and the class token"
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    decay = [p for n, p in named if p.ndim > 1 and n not in ("cls", "pos")]
    rest = [p for n, p in named if not (p.ndim > 1 and n not in ("cls", "pos"))]
    return [dict(params=ps, weight_decay=wd) for ps, wd in ((decay, 0.05), (rest, 0.0)) if ps]


def fit(model, loaders, epochs, device):
    model.to(device)
    lr = 2e-3 if isinstance(model, ResNet18) else 1e-3
    opt = optim.AdamW(splitter(model), lr=lr, betas=(0.9, 0.99))
    total = len(loaders["train"]) * epochs
    pct_start = 0.15
    sched = optim.lr_scheduler.LambdaLR(opt, lambda i: warmup_cosine(i, int(total * pct_start), total))
    train_loss = nn.CrossEntropyLoss(label_smoothing=0.1)  # history: the training loss is the smoothed one
    valid_loss = nn.CrossEntropyLoss()
    rec, save = Recorder(), SaveModel(model)
    for _ in range(epochs):
        tl, ta = train_epoch(model, loaders["train"], train_loss, opt, sched, device)
        res = evaluate(model, loaders["validation"], valid_loss, device)
        rec.add(tl, ta, res["loss"], res["accuracy"])
        save(res["accuracy"])
    save.load_best()
    return rec
