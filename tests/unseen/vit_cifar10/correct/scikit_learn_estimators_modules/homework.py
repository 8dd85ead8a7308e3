# %% Assignment 2, for a scikit-learn user: networks.py, estimators.py, scores.py and figures.py lie beside this file
import time
import zipfile

import numpy as np
import pandas as pd
import torch
from estimators import NetworkClassifier, evaluate, fit, train_epoch, warmup_cosine
from figures import (
    attention_map,
    plot_attention,
    plot_confusion_matrix,
    plot_learning_curves,
    plot_roc,
    plot_top3,
)
from networks import (
    BasicBlock,
    EncoderBlock,
    MultiHeadSelfAttention,
    PatchEmbedding,
    ResNet18,
    VisionTransformer,
    parameter_table,
    sinusoidal_positions,
)
from scores import classification_metrics, export_metrics
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "401774390"
RANDOM_STATE = 0
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(RANDOM_STATE)

# %% Load
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

scale = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
augment_and_scale = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), scale])
augmented = datasets.ImageFolder("data/train", transform=augment_and_scale)
plain = datasets.ImageFolder("data/train", transform=scale)
test = datasets.ImageFolder("data/test", transform=scale)
class_names = test.classes

n_validation = max(len(class_names), round(0.1 * len(plain)))
splitter = StratifiedShuffleSplit(n_splits=1, test_size=n_validation, random_state=RANDOM_STATE)
train_index, validation_index = next(splitter.split(np.zeros(len(plain)), plain.targets))
loaders = {
    "train": DataLoader(Subset(augmented, train_index.tolist()), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(plain, validation_index.tolist()), batch_size=256),
}
test_loader = DataLoader(test, batch_size=256)

# %% Fit both
EPOCHS = 15
models = {
    "vit": VisionTransformer(
        num_classes=len(class_names), dim=96, depth=6, heads=3, mlp_ratio=2.0, dropout=0.0, pool="mean"
    ),
    "resnet": ResNet18(num_classes=len(class_names), width=16),
}
fitted = {}
for name, model in models.items():
    start = time.time()
    fitted[name] = fit(model, loaders, EPOCHS, device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{name}.pth")
    print(f"{name}: {time.time() - start:.0f} s, best epoch {fitted[name].best_epoch_}")

# %% Score
criterion = nn.CrossEntropyLoss()
reports = {}
for name, model in models.items():
    result = evaluate(model, test_loader, criterion, device)
    reports[name] = classification_metrics(result["targets"], result["probabilities"])
    print(name, pd.DataFrame({key: reports[name][key] for key in ("precision", "recall", "f1", "support")}, class_names))
    print(f"accuracy {result['accuracy']:.4f}", parameter_table(model), sep="\n")
    plot_learning_curves(fitted[name])
    plot_confusion_matrix(reports[name]["confusion"], class_names)
    plot_roc(result["targets"], result["probabilities"], class_names)
export_metrics(reports, f"{STUDENT_ID}_metrics.csv")

# %% Look
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(models["vit"], images, labels, class_names, MEAN, STD)
plot_top3(images, labels, fitted["vit"].predict_proba([(images, labels)]), class_names, MEAN, STD)


# %% Study
class OneFactorSearch:
    """Like GridSearchCV, but from a base one factor at a time; what it found is the table `results_`."""

    def __init__(self, base, factors, random_states):
        self.base, self.factors, self.random_states = base, factors, random_states

    def candidates(self):
        yield from ParameterGrid([{**{k: [v] for k, v in self.base.items()}, "seed": list(self.random_states)}])
        for factor, values in self.factors.items():
            for value in values:
                yield {**self.base, factor: value, "seed": self.random_states[0]}

    def fit(self, loaders):
        rows = []
        for candidate in self.candidates():
            torch.manual_seed(candidate["seed"])
            sizes = {key: value for key, value in candidate.items() if key not in ("epochs", "seed")}
            network = VisionTransformer(num_classes=len(class_names), dropout=0.0, **sizes)
            estimator = NetworkClassifier(network, epochs=candidate["epochs"], device=device).fit(loaders)
            parameters = sum(number for _, number in parameter_table(network))
            accuracy = round(estimator.score(loaders["validation"]), 4)
            rows.append({**candidate, "parameters": parameters, "validation_accuracy": accuracy})
        self.results_ = pd.DataFrame(rows)
        return self


COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
RUN_STUDY = True
if RUN_STUDY:
    search = OneFactorSearch(
        base=dict(patch_size=8, dim=48, depth=3, heads=3, mlp_ratio=2.0, positions="learned", epochs=5),
        factors=dict(
            patch_size=[4], dim=[24, 96], depth=[2, 6], heads=[6], mlp_ratio=[4.0], positions=["sinusoidal"]
        ),
        random_states=(0, 1, 2),
    ).fit(loaders)
    search.results_[COLUMNS].to_csv(f"{STUDENT_ID}_study.csv", index=False)
