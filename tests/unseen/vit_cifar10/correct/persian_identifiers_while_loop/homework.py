# تکلیف دوم: ترنسفورمر بینایی برای سیفار۱۰
# نام کلاس‌ها و تابع‌های تکلیف انگلیسی مانده است، بقیه به فارسی
import csv
import math
import zipfile
from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"
دستگاه = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
نرخ_ترنسفورمر = 8e-4
نرخ_شبکه = 2e-3
سهم_گرم = 0.12  # سهمی از گام‌ها که نرخ یادگیری بالا می‌رود


class PatchEmbedding(nn.Module):
    """تصویر را به تکه‌ها می‌برد و هر تکه را به یک نشانه نگاشت می‌کند."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.نگاشت = nn.Conv2d(in_channels, dim, patch_size, patch_size)

    def forward(self, images):
        نقشه = self.نگاشت(images)
        return نقشه.flatten(2).transpose(1, 2)


def sinusoidal_positions(tokens, dim):
    جدول = torch.zeros(tokens, dim)
    for جفت in range(dim // 2):
        زاویه = torch.arange(tokens) / 10000 ** (2 * جفت / dim)
        جدول[:, 2 * جفت] = torch.sin(زاویه)
        جدول[:, 2 * جفت + 1] = torch.cos(زاویه)
    return جدول


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        if dim % heads:
            raise ValueError("dim بر heads بخش‌پذیر نیست")
        self.heads = heads
        self.پرسش, self.کلید, self.مقدار = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.حذف = nn.Dropout(dropout)
        self.خروجی = nn.Linear(dim, dim)

    def سرها(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, return_weights=False):
        پ, ک, م = self.سرها(self.پرسش(x)), self.سرها(self.کلید(x)), self.سرها(self.مقدار(x))
        امتیاز = torch.einsum("bhid,bhjd->bhij", پ, ک) / math.sqrt(پ.size(-1))
        وزن = F.softmax(امتیاز, dim=-1)
        جمع = torch.einsum("bhij,bhjd->bihd", self.حذف(وزن), م)
        نتیجه = self.خروجی(جمع.flatten(2))
        if return_weights:
            return نتیجه, وزن
        return نتیجه


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        میانی = int(dim * mlp_ratio)
        self.نرمال۱ = nn.LayerNorm(dim)
        self.توجه = MultiHeadSelfAttention(dim, heads, dropout)
        self.نرمال۲ = nn.LayerNorm(dim)
        self.لایه۱ = nn.Linear(dim, میانی)
        self.لایه۲ = nn.Linear(میانی, dim)
        self.حذف = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.حذف(self.توجه(self.نرمال۱(x)))
        پنهان = self.حذف(F.gelu(self.لایه۱(self.نرمال۲(x))))
        return x + self.حذف(self.لایه۲(پنهان))


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        self.pool = pool
        تعداد = (image_size // patch_size) ** 2
        if pool == "cls":
            self.نشانه = nn.Parameter(torch.zeros(1, 1, dim))
            nn.init.normal_(self.نشانه, std=0.02)
            تعداد += 1
        self.تکه_ها = PatchEmbedding(image_size, patch_size, in_channels, dim)
        if positions == "sinusoidal":
            self.جایگاه = nn.Parameter(sinusoidal_positions(تعداد, dim)[None], requires_grad=False)
        else:
            self.جایگاه = nn.Parameter(torch.randn(1, تعداد, dim) * 0.02)
        self.حذف = nn.Dropout(dropout)
        self.بلوک = nn.Sequential(*[EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.نرمال = nn.LayerNorm(dim)
        self.سر = nn.Linear(dim, num_classes)

    def آغاز(self, images):
        x = self.تکه_ها(images)
        if self.pool == "cls":
            x = torch.cat([self.نشانه.expand(x.size(0), -1, -1), x], dim=1)
        return self.حذف(x + self.جایگاه)

    def forward(self, images):
        x = self.بلوک(self.آغاز(images))
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.سر(self.نرمال(x))

    def attention(self, images):
        x = self.بلوک[:-1](self.آغاز(images))
        آخر = self.بلوک[-1]
        _, وزن = آخر.توجه(آخر.نرمال۱(x), return_weights=True)
        return وزن


@torch.no_grad()
def attention_map(model, image):
    حالت = model.training
    model.eval()
    try:
        جا = next(model.parameters()).device
        وزن = model.attention(image.unsqueeze(0).to(جا))
    finally:
        model.train(حالت)
    وزن = وزن.squeeze(0).mean(dim=0).cpu()
    if math.isqrt(وزن.size(0)) ** 2 == وزن.size(0):
        سطر = وزن.mean(dim=0)
    else:
        سطر = وزن[0, 1:]
    ضلع = math.isqrt(سطر.numel())
    نقشه = (سطر / سطر.max()).reshape(1, 1, ضلع, ضلع)
    return F.interpolate(نقشه, size=tuple(image.shape[-2:]), mode="nearest")[0, 0]


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.کانو۱ = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.دسته۱ = nn.BatchNorm2d(channels)
        self.کانو۲ = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.دسته۲ = nn.BatchNorm2d(channels)
        self.میانبر = None
        if stride != 1 or in_channels != channels:
            self.میانبر = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = torch.relu(self.دسته۱(self.کانو۱(x)))
        y = self.دسته۲(self.کانو۲(y))
        y = y + (x if self.میانبر is None else self.میانبر(x))
        return torch.relu(y)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.ساقه = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.گروه۱ = nn.Sequential(BasicBlock(width, width), BasicBlock(width, width))
        self.گروه۲ = nn.Sequential(BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 2 * width))
        self.گروه۳ = nn.Sequential(BasicBlock(2 * width, 4 * width, 2), BasicBlock(4 * width, 4 * width))
        self.گروه۴ = nn.Sequential(BasicBlock(4 * width, 8 * width, 2), BasicBlock(8 * width, 8 * width))
        self.سر = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        x = self.ساقه(images)
        for گروه in (self.گروه۱, self.گروه۲, self.گروه۳, self.گروه۴):
            x = گروه(x)
        return self.سر(F.adaptive_avg_pool2d(x, 1).flatten(1))


def parameter_table(model):
    return [(نام, وزن.numel()) for نام, وزن in model.named_parameters()]


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    باقی = total_steps - warmup_steps
    پیشرفت = min(1.0, (step - warmup_steps) / باقی) if باقی > 0 else 1.0 * (step > warmup_steps)
    return 0.5 + 0.5 * math.cos(math.pi * پیشرفت)


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    زیان_کل, درست, همه = 0.0, 0, 0
    for تصویر, برچسب in loader:
        تصویر, برچسب = تصویر.to(device), برچسب.to(device)
        خروجی = model(تصویر)
        زیان = criterion(خروجی, برچسب)
        optimizer.zero_grad()
        زیان.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        زیان_کل += زیان.item() * برچسب.numel()
        درست += (خروجی.argmax(dim=1) == برچسب).sum().item()
        همه += برچسب.numel()
    return زیان_کل / همه, درست / همه


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    زیان_کل, هدف, احتمال = 0.0, [], []
    for تصویر, برچسب in loader:
        تصویر, برچسب = تصویر.to(device), برچسب.to(device)
        خروجی = model(تصویر)
        زیان_کل += criterion(خروجی, برچسب).item() * len(برچسب)
        هدف.extend(برچسب.tolist())
        احتمال.append(F.softmax(خروجی, dim=1).cpu().numpy())
    هدف, احتمال = np.array(هدف), np.concatenate(احتمال)
    پیش_بینی = احتمال.argmax(axis=1)
    return dict(loss=زیان_کل / len(هدف), accuracy=float(np.mean(پیش_بینی == هدف)), targets=هدف,
                predictions=پیش_بینی, probabilities=احتمال)


def fit(model, loaders, epochs, device):
    """دور به دور آموزش می‌دهد و در پایان بهترین وزن‌ها را برمی‌گرداند."""
    model.to(device)
    نرخ = نرخ_ترنسفورمر if isinstance(model, VisionTransformer) else نرخ_شبکه
    بهینه = optim.AdamW((وزن for وزن in model.parameters() if وزن.requires_grad), lr=نرخ, weight_decay=0.05)
    گام_ها = epochs * len(loaders["train"])
    برنامه = optim.lr_scheduler.LambdaLR(بهینه, lambda گام: warmup_cosine(گام, int(سهم_گرم * گام_ها), گام_ها))
    معیار = nn.CrossEntropyLoss(label_smoothing=0.05)
    تاریخچه = {"زیان آموزش": [], "دقت آموزش": [], "زیان اعتبار": [], "دقت اعتبار": []}
    بهترین, بهترین_دقت, دور = None, -1.0, 0
    while True:
        if دور >= epochs:
            break
        دور += 1
        زیان, دقت = train_epoch(model, loaders["train"], معیار, بهینه, برنامه, device)
        یافته = evaluate(model, loaders["validation"], معیار, device)
        for نام, مقدار in zip(تاریخچه, (زیان, دقت, یافته["loss"], یافته["accuracy"])):
            تاریخچه[نام].append(مقدار)
        print(f"دور {دور}: {زیان:.4f} {دقت:.4f} | {یافته['loss']:.4f} {یافته['accuracy']:.4f}")
        if یافته["accuracy"] > بهترین_دقت:
            بهترین_دقت = یافته["accuracy"]
            بهترین = deepcopy(model.state_dict())
    if بهترین is not None:
        model.load_state_dict(بهترین)
    return تاریخچه


def classification_metrics(targets, probabilities):
    هدف, احتمال = np.array(targets).astype(np.int64), np.array(probabilities).astype(np.float64)
    کلاس_ها = احتمال.shape[1]
    گفته = احتمال.argmax(axis=1)
    ماتریس = np.array([[int(np.sum((هدف == i) & (گفته == j))) for j in range(کلاس_ها)] for i in range(کلاس_ها)])
    دقت, بازیابی, اف۱, سطح = np.zeros(کلاس_ها), np.zeros(کلاس_ها), np.zeros(کلاس_ها), np.full(کلاس_ها, np.nan)
    for c in range(کلاس_ها):
        درست = ماتریس[c, c]
        if ماتریس[:, c].sum():
            دقت[c] = درست / ماتریس[:, c].sum()
        if ماتریس[c].sum():
            بازیابی[c] = درست / ماتریس[c].sum()
        if دقت[c] + بازیابی[c] > 0:
            اف۱[c] = 2 * دقت[c] * بازیابی[c] / (دقت[c] + بازیابی[c])
        مثبت, منفی = احتمال[هدف == c, c], احتمال[هدف != c, c]
        if مثبت.size and منفی.size:
            # هر مثبت با هر منفی مقایسه می‌شود؛ تکه تکه، تا حافظه کم نیاید
            برد = sum((np.sum(م > منفی) + 0.5 * np.sum(م == منفی)) for م in مثبت)
            سطح[c] = برد / (مثبت.size * منفی.size)
    شمار = ماتریس.sum(axis=1)
    همه = {"confusion": ماتریس, "precision": دقت, "recall": بازیابی, "f1": اف۱, "support": شمار, "roc_auc": سطح,
           "accuracy": float(np.trace(ماتریس) / max(len(هدف), 1))}
    for نام in ["precision", "recall", "f1", "roc_auc"]:
        هست = [c for c in range(کلاس_ها) if شمار[c] > 0 and not np.isnan(همه[نام][c])]
        همه["macro_" + نام] = float(np.mean(همه[نام][هست])) if هست else math.nan
        همه["weighted_" + نام] = float(np.average(همه[نام][هست], weights=شمار[هست])) if هست else math.nan
    return همه


def export_metrics(metrics, path):
    سطرها = []

    def باز_کن(نام, چیز):
        if isinstance(چیز, dict):
            for کلید, درون in چیز.items():
                باز_کن(نام + [str(کلید)], درون)
            return
        چیز = np.asarray(چیز)
        if چیز.ndim == 0:
            سطرها.append((".".join(نام), چیز.item()))
        elif چیز.ndim == 1:
            for شماره, عدد in enumerate(چیز.tolist()):
                باز_کن(نام + [str(شماره)], عدد)

    باز_کن([], metrics)
    with open(path, "w", newline="", encoding="utf-8") as پرونده:
        csv.writer(پرونده).writerows([("metric", "value"), *سطرها])


def _دیدنی(image, mean, std):
    تصویر = np.asarray(image.detach().cpu()).transpose(1, 2, 0) * np.array(std) + np.array(mean)
    return تصویر.clip(0, 1)


def plot_learning_curves(history):
    شکل, (چپ, راست) = plt.subplots(1, 2, figsize=(11, 4))
    دورها = range(1, len(history["زیان آموزش"]) + 1)
    چپ.plot(دورها, history["زیان آموزش"], label="training loss")
    چپ.plot(دورها, history["زیان اعتبار"], label="validation loss")
    راست.plot(دورها, history["دقت آموزش"], label="training accuracy")
    راست.plot(دورها, history["دقت اعتبار"], label="validation accuracy")
    for محور, نام in ((چپ, "loss"), (راست, "accuracy")):
        محور.set_xlabel("epoch")
        محور.set_ylabel(نام)
        محور.legend()
    return شکل


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    شکل, محور = plt.subplots(figsize=(8, 8))
    محور.matshow(matrix, cmap="YlGn")
    for i in range(len(class_names)):
        for j in range(len(class_names)):
            محور.annotate(str(int(matrix[i, j])), (j, i), ha="center", va="center")
    محور.set_xticks(range(len(class_names)))
    محور.set_xticklabels(class_names, rotation=60)
    محور.set_yticks(range(len(class_names)))
    محور.set_yticklabels(class_names)
    محور.set_xlabel("Predicted")
    محور.set_ylabel("True")
    return شکل


def plot_roc(targets, probabilities, class_names):
    هدف, احتمال = np.asarray(targets), np.asarray(probabilities)
    شکل, محور = plt.subplots()
    for c, نام in enumerate(class_names):
        مثبت = هدف == c
        if مثبت.sum() in (0, len(هدف)):
            continue
        ترتیب = np.argsort(-احتمال[:, c], kind="stable")
        مرتب = احتمال[ترتیب, c]
        پایان = np.append(np.flatnonzero(np.diff(مرتب)), len(مرتب) - 1)  # آخرین جای هر مقدار
        درست = np.cumsum(مثبت[ترتیب])[پایان] / مثبت.sum()
        نادرست = np.cumsum(~مثبت[ترتیب])[پایان] / (~مثبت).sum()
        محور.plot(np.append(0, نادرست), np.append(0, درست), label=نام)
    محور.set_xlabel("False positive rate")
    محور.set_ylabel("True positive rate")
    محور.legend()
    return شکل


def plot_attention(model, images, labels, class_names, mean, std):
    شکل = plt.figure(figsize=(7, 2.4 * len(images)))
    for i in range(len(images)):
        تصویر = _دیدنی(images[i], mean, std)
        نقشه = attention_map(model, images[i]).numpy()
        for j, عنوان in enumerate((class_names[int(labels[i])], "attention map", "overlay")):
            محور = شکل.add_subplot(len(images), 3, 3 * i + j + 1)
            if j != 1:
                محور.imshow(تصویر)
            if j != 0:
                محور.imshow(نقشه, cmap="jet", alpha=1.0 if j == 1 else 0.45)
            محور.set_title(عنوان)
            محور.axis("off")
    شکل.tight_layout()
    return شکل


def plot_top3(images, labels, probabilities, class_names, mean, std):
    احتمال = np.asarray(probabilities)
    شکل, محورها = plt.subplots(len(images), 2, figsize=(7, 2.2 * len(images)), squeeze=False)
    for (چپ, راست), تصویر, برچسب, سطر in zip(محورها, images, labels, احتمال):
        سه = np.argsort(-سطر, kind="stable")[:3]
        چپ.imshow(_دیدنی(تصویر, mean, std))
        چپ.set_title(f"true: {class_names[int(برچسب)]}")
        چپ.axis("off")
        راست.barh(range(len(سه)), سطر[سه])
        راست.set_yticks(range(len(سه)), [f"{class_names[c]} ({سطر[c]:.3f})" for c in سه])
        راست.invert_yaxis()
        راست.set_xlim(0, 1)
        راست.set_xlabel("probability")
    شکل.tight_layout()
    return شکل


ستون_ها = ["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
          "validation_accuracy"]
پایه = dict(patch_size=4, dim=48, depth=3, heads=4, mlp_ratio=2, positions="learned", epochs=5)


def مطالعه(loaders, class_names):
    """پایه با سه بذر، و هفت مدل که هر کدام یک مقدار دیگر دارند."""
    تغییرها = [("patch_size", 8), ("dim", 96), ("depth", 2), ("depth", 6), ("heads", 2), ("mlp_ratio", 4),
               ("positions", "sinusoidal")]
    کارها = [(پایه, بذر) for بذر in (11, 12, 13)] + [({**پایه, نام: مقدار}, 11) for نام, مقدار in تغییرها]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as پرونده:
        نویسنده = csv.DictWriter(پرونده, ستون_ها)
        نویسنده.writeheader()
        while کارها:
            مقادیر, بذر = کارها.pop(0)
            torch.manual_seed(بذر)
            اندازه = {نام: مقدار for نام, مقدار in مقادیر.items() if نام != "epochs"}
            مدل = VisionTransformer(**اندازه, dropout=0.0, num_classes=len(class_names))
            تعداد = sum(وزن.numel() for وزن in مدل.parameters())
            fit(مدل, loaders, مقادیر["epochs"], دستگاه)
            دقت = evaluate(مدل, loaders["validation"], nn.CrossEntropyLoss(), دستگاه)["accuracy"]
            نویسنده.writerow({**مقادیر, "seed": بذر, "parameters": تعداد, "validation_accuracy": round(دقت, 4)})


def اصلی():
    torch.manual_seed(1402)
    with zipfile.ZipFile("dataset.zip") as بایگانی:
        بایگانی.extractall("data")
    ساده = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    متنوع = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=4), ساده])
    آموزش, اعتبار = datasets.ImageFolder("data/train", متنوع), datasets.ImageFolder("data/train", ساده)
    آزمون = datasets.ImageFolder("data/test", ساده)
    class_names = آزمون.classes
    ترتیب = torch.randperm(len(آموزش), generator=torch.Generator().manual_seed(42)).tolist()
    کنار = len(ترتیب) // 10
    loaders = {
        "train": DataLoader(Subset(آموزش, ترتیب[کنار:]), batch_size=64, shuffle=True),
        "validation": DataLoader(Subset(اعتبار, ترتیب[:کنار]), batch_size=256),
    }
    test_loader = DataLoader(آزمون, batch_size=256)

    ترنسفورمر = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2, dropout=0.05, num_classes=len(class_names))
    شبکه = ResNet18(num_classes=len(class_names), width=16)
    سنجه_ها = {}
    for نام, مدل, دورها in (("vit", ترنسفورمر, 15), ("resnet", شبکه, 10)):
        تاریخچه = fit(مدل, loaders, دورها, دستگاه)
        torch.save(مدل.state_dict(), f"{STUDENT_ID}_CIFAR10_{نام}.pth")
        یافته = evaluate(مدل, test_loader, nn.CrossEntropyLoss(), دستگاه)
        سنجه_ها[نام] = classification_metrics(یافته["targets"], یافته["probabilities"])
        print(نام, یافته["accuracy"], sum(تعداد for _, تعداد in parameter_table(مدل)))
        plot_learning_curves(تاریخچه)
        plot_confusion_matrix(سنجه_ها[نام]["confusion"], class_names)
        plot_roc(یافته["targets"], یافته["probabilities"], class_names)
    export_metrics(سنجه_ها, f"{STUDENT_ID}_metrics.csv")
    images, labels = next(iter(test_loader))
    plot_attention(ترنسفورمر, images[:5], labels[:5], class_names, MEAN, STD)
    احتمال = evaluate(ترنسفورمر, [(images[:5], labels[:5])], nn.CrossEntropyLoss(), دستگاه)["probabilities"]
    plot_top3(images[:5], labels[:5], احتمال, class_names, MEAN, STD)
    مطالعه(loaders, class_names)
    plt.show()


if __name__ == "__main__":
    اصلی()
