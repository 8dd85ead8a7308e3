"""A Trainer class with a list of callbacks (rate schedule, early stopping that restores the best weights, printing).

Epochs: 6
Rates: 0.05 0.045 0.0405 0.03645 0.03281 0.02952
Optimizers: AdamW
Parameters: 1636
Others: 0
Weights: last
Ambiguous: Weights: EarlyStopping restores the best weights, but here the best epoch is the last one (test loss falls in all six), so the saved weights equal those after the last step; early stopping does not fire.
"""
import copy
import time

torch.manual_seed(42)

transform = transforms.Compose([
    transforms.Grayscale(num_output_channels=1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_data = datasets.ImageFolder("data/train", transform=transform)
test_data = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_data, batch_size=4, shuffle=True)
test_loader = DataLoader(test_data, batch_size=4, shuffle=False)


class Callback:
    def on_train_begin(self, trainer): pass
    def on_epoch_end(self, trainer, epoch): pass
    def on_train_end(self, trainer): pass


class PrintCallback(Callback):
    def on_train_begin(self, trainer):
        self.start = time.time()

    def on_epoch_end(self, trainer, epoch):
        lr = trainer.optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch + 1:2d}  lr {lr:.5f}  test loss {trainer.test_loss[-1]:.4f}  {time.time() - self.start:.1f} s")


class SchedulerCallback(Callback):
    def __init__(self, scheduler):
        self.scheduler = scheduler

    def on_epoch_end(self, trainer, epoch):
        self.scheduler.step()


class EarlyStopping(Callback):
    def __init__(self, patience=2):
        self.patience, self.wait, self.best = patience, 0, float("inf")

    def on_epoch_end(self, trainer, epoch):
        if trainer.test_loss[-1] < self.best:
            self.best, self.wait = trainer.test_loss[-1], 0
            self.weights = copy.deepcopy(trainer.model.state_dict())
        else:
            self.wait += 1
            trainer.stop = self.wait >= self.patience

    def on_train_end(self, trainer):
        trainer.model.load_state_dict(self.weights)
        print("best test loss", round(self.best, 4))


class Trainer:
    def __init__(self, model, optimizer, callbacks=()):
        self.model, self.optimizer, self.callbacks = model, optimizer, list(callbacks)
        self.train_loss, self.test_loss, self.stop = [], [], False

    def call(self, name, *args):
        for callback in self.callbacks:
            getattr(callback, name)(self, *args)

    def fit(self, train_loader, test_loader, epochs):
        self.call("on_train_begin")
        for epoch in range(epochs):
            train_epoch(self.model, self.optimizer, train_loader, self.train_loss)
            evaluate(self.model, test_loader, self.test_loss)
            self.call("on_epoch_end", epoch)
            if self.stop:
                print("early stopping after epoch", epoch + 1)
                break
        self.call("on_train_end")


model = ViT(image_size=8, patch_size=4, num_classes=3, dim=16, depth=2, heads=2, mlp_dim=32)
optimizer = optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.01)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
trainer = Trainer(model, optimizer, [PrintCallback(), SchedulerCallback(scheduler), EarlyStopping(patience=2)])
trainer.fit(train_loader, test_loader, epochs=6)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

plt.plot(trainer.train_loss)
plt.title("training loss")
plt.savefig("loss.png")
