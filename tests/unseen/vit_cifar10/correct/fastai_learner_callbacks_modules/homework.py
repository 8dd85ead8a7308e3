# %% Imports, fastai way: stars are allowed because every module has its __all__
import csv
import time
import zipfile

import torch
from core import *
from interp import *
from layers import *
from learner import *
from sched import *
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision import transforms as T

STUDENT_ID = "400556013"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # cifar_stats, as everywhere on the web
device = default_device()
torch.manual_seed(42)

# %% DataBlock, so to speak
with zipfile.ZipFile("dataset.zip") as z:
    z.extractall("data")

item_tfms = [T.ToTensor(), T.Normalize(MEAN, STD)]
# reflected borders and two mild extra operations on each image
aug_tfms = [T.RandomCrop(32, padding=4, padding_mode="reflect"), T.RandomHorizontalFlip(), T.RandAugment(1, 5)]


def get_dset(part, aug=False):
    return datasets.ImageFolder(f"data/{part}", T.Compose((aug_tfms if aug else []) + item_tfms))


class RandomSplitter:
    def __init__(self, valid_pct=0.1, seed=42):
        store_attr()

    def __call__(self, o):
        idxs = torch.randperm(len(o), generator=torch.Generator().manual_seed(self.seed)).tolist()
        cut = max(1, int(self.valid_pct * len(o)))
        return idxs[cut:], idxs[:cut]


valid_dset, test_dset = get_dset("train"), get_dset("test")
class_names = test_dset.classes
train_idx, valid_idx = RandomSplitter()(valid_dset)
loaders = dict(
    train=DataLoader(Subset(get_dset("train", aug=True), train_idx), batch_size=64, shuffle=True),
    validation=DataLoader(Subset(valid_dset, valid_idx), batch_size=128),
)
test_loader = DataLoader(test_dset, batch_size=128)

# %% Both models
EPOCHS = 15


def train_and_save(name, model):
    start = time.time()
    rec = fit(model, loaders, EPOCHS, device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{name}.pth")
    print(f"{name}: {time.time() - start:.0f}s, {params(model).map(torch.numel)[:3]} ... parameters")
    return rec


vit = VisionTransformer(dim=128, depth=3, heads=8, mlp_ratio=3.0, dropout=0.0, num_classes=len(class_names))
vit_history = train_and_save("vit", vit)
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = train_and_save("resnet", resnet)

# %% Compare
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    res = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(res["targets"], res["probabilities"])
    print(name, f"{res['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(res["targets"], res["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %% Show
xb, yb = next(iter(test_loader))
xb, yb = xb[:6], yb[:6]
plot_attention(vit, xb, yb, class_names, MEAN, STD)
with torch.no_grad():
    plot_top3(xb, yb, vit.eval()(xb.to(device)).softmax(1).cpu(), class_names, MEAN, STD)

# %% Study
RUN_STUDY = True
base = dict(patch_size=8, dim=64, depth=3, heads=4, mlp_ratio=2.0, positions="learned", epochs=5)
changes = [
    dict(patch_size=4), dict(dim=128), dict(dim=32), dict(depth=6), dict(heads=8), dict(mlp_ratio=4.0),
    dict(positions="sinusoidal"),
]


def experiment(seed=0, **change):
    cfg = {**base, **change}
    torch.manual_seed(seed)
    model = VisionTransformer(
        **{k: v for k, v in cfg.items() if k != "epochs"}, dropout=0.0, num_classes=len(class_names)
    )
    fit(model, loaders, cfg["epochs"], device)
    acc = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    return dict(**cfg, seed=seed, parameters=sum(params(model).map(torch.numel)), validation_accuracy=round(acc, 4))


if RUN_STUDY:
    runs = [experiment(seed) for seed in range(3)] + [experiment(**change) for change in changes]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf8") as f:
        w = csv.DictWriter(f, list(runs[0]))
        w.writeheader()
        w.writerows(runs)
