# تمرین ۱ درس یادگیری عمیق: ویژن ترنسفورمر برای عیب‌های سطح فولاد
# شماره دانشجویی: 400107901

import copy
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400107901"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# همه‌ی تنظیمات در یک دیکشنری
tanzimat = {
    "seed": 42,
    "andaze_tasvir": 28,      # اندازه تصویر
    "batch_size": 40,
    "sahm_validation": 0.15,  # سهم اعتبارسنجی از داده‌های آموزش
    "lr": 7e-4,
    "weight_decay": 1e-4,
    "max_epoch": 10,
    "sabr": 3,                # صبر برای توقف زودهنگام
    "model": {
        "image_size": 28,
        "patch_size": 4,
        "num_classes": 6,
        "channels": 1,
        "dim": 64,
        "depth": 6,
        "heads": 4,
        "dim_head": 32,
        "mlp_dim": 128,
        "dropout": 0.1,
        "emb_dropout": 0.05,
    },
}


# ------------------------------------------------------------------ داده‌ها
def sabet_kardan_seed(seed):
    """تکرارپذیری نتایج"""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def find_class_folders(root):
    """پوشه‌ای که پوشه‌ی کلاس‌ها داخل آن است"""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    """تقسیم هفتاد به سی برای هر کلاس"""
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in (("train", names[:n_train]), ("test", names[n_train:])):
            folder = destination / part / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)


def amade_kardan_dade():
    """باز کردن فایل زیپ و تقسیم داده‌ها"""
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("dataset")
    split_dataset(find_class_folders(Path("dataset")), Path("data"))


def sakht_transform(amoozesh):
    """تبدیل‌ها؛ فقط برای آموزش داده‌افزایی داریم"""
    andaze = tanzimat["andaze_tasvir"]
    marahel = [transforms.Resize((andaze, andaze)), transforms.Grayscale(num_output_channels=1)]
    if amoozesh:
        marahel += [
            transforms.RandomHorizontalFlip(),
            transforms.RandomVerticalFlip(),
            transforms.RandomAffine(degrees=5, translate=(0.05, 0.05), fill=128),
        ]
    marahel += [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    return transforms.Compose(marahel)


def joda_kardan_validation(targets, sahm, seed):
    """از هر کلاس به یک نسبت برای اعتبارسنجی کنار می‌گذاریم (داده تست دست نمی‌خورد)"""
    amoozesh, validation = [], []
    tolid = random.Random(seed)
    for kelas in sorted(set(targets)):
        andis = [i for i, t in enumerate(targets) if t == kelas]
        tolid.shuffle(andis)
        tedad = max(1, round(sahm * len(andis)))
        validation += andis[:tedad]
        amoozesh += andis[tedad:]
    return amoozesh, validation


def sakht_loaderha():
    """سه لودر: آموزش، اعتبارسنجی، تست"""
    ba_afzayesh = datasets.ImageFolder("data/train", transform=sakht_transform(True))
    sade = datasets.ImageFolder("data/train", transform=sakht_transform(False))
    test = datasets.ImageFolder("data/test", transform=sakht_transform(False))
    amoozesh, validation = joda_kardan_validation(sade.targets, tanzimat["sahm_validation"], tanzimat["seed"])
    n = tanzimat["batch_size"]
    train_loader = DataLoader(Subset(ba_afzayesh, amoozesh), batch_size=n, shuffle=True)
    val_loader = DataLoader(Subset(sade, validation), batch_size=n)
    test_loader = DataLoader(test, batch_size=n)
    print(f"آموزش: {len(amoozesh)}  اعتبارسنجی: {len(validation)}  تست: {len(test)}")
    return train_loader, val_loader, test_loader, sade.classes


def namayesh_nemoone(loader, class_names, tedad=12):
    """نمایش چند نمونه"""
    tasavir, barchasbha = next(iter(loader))
    plt.figure(figsize=(9, 3.5))
    for i in range(min(tedad, len(tasavir))):
        plt.subplot(2, (tedad + 1) // 2, i + 1)
        plt.imshow(tasavir[i, 0], cmap="gray", vmin=-1, vmax=1)
        plt.title(class_names[barchasbha[i]], fontsize=7)
        plt.axis("off")
    plt.show()


# ------------------------------------------------------------------ مدل
class PreNorm(nn.Module):
    """اول نرمال‌سازی، بعد تابع"""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    """دو لایه خطی با GELU"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.laye1 = nn.Linear(dim, hidden_dim)
        self.laye2 = nn.Linear(hidden_dim, dim)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x):
        x = self.laye1(x)
        x = F.gelu(x)
        x = self.dropout1(x)
        x = self.laye2(x)
        return self.dropout2(x)


def joda_kon_sarha(x, heads):
    """(b, n, h*d) -> (b, h, n, d)"""
    return rearrange(x, "b n (h d) -> b h n d", h=heads)


def bechasban_sarha(x):
    """(b, h, n, d) -> (b, n, h*d)"""
    return rearrange(x, "b h n d -> b n (h d)")


def zarb_dakheli_tavajoh(q, k, v):
    """softmax(q k^T / sqrt(d)) v"""
    emtiaz = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    vazn = torch.softmax(emtiaz, dim=-1)  # جمع هر سطر برابر یک است
    return torch.einsum("bhij,bhjd->bhid", vazn, v)


class Attention(nn.Module):
    """توجه چندسر"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        dakheli = heads * dim_head
        self.heads = heads
        self.porsesh = nn.Linear(dim, dakheli, bias=False)  # query
        self.kelid = nn.Linear(dim, dakheli, bias=False)    # key
        self.meghdar = nn.Linear(dim, dakheli, bias=False)  # value
        self.khorooji = nn.Linear(dakheli, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q = joda_kon_sarha(self.porsesh(x), self.heads)
        k = joda_kon_sarha(self.kelid(x), self.heads)
        v = joda_kon_sarha(self.meghdar(x), self.heads)
        y = bechasban_sarha(zarb_dakheli_tavajoh(q, k, v))
        return self.dropout(self.khorooji(y))


class Transformer(nn.Module):
    """چند بلوک پشت سر هم، هر کدام با اتصال باقیمانده"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.bolookha = nn.ModuleList([])
        for _ in range(depth):
            tavajoh = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.bolookha.append(nn.ModuleList([tavajoh, mlp]))

    def forward(self, x):
        for tavajoh, mlp in self.bolookha:
            x = x + tavajoh(x)
            x = x + mlp(x)
        return x


class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        assert image_size % patch_size == 0, "اندازه تصویر باید بر اندازه پچ بخش‌پذیر باشد"
        assert pool in ("cls", "mean")
        self.patch_size = patch_size
        self.pool = pool
        tedad_patch = (image_size // patch_size) ** 2
        self.tabdil_patch = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.jaygah = nn.Parameter(torch.randn(1, tedad_patch + 1, dim) * 0.02)  # جایگاه‌ها (قابل یادگیری)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.tabaghe_band = nn.Linear(dim, num_classes)

    def tekke_kardan(self, img):
        """تصویر را به پچ‌های بدون همپوشانی تبدیل می‌کند"""
        p = self.patch_size
        return rearrange(img, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=p, p2=p)

    def forward(self, img):
        x = self.tabdil_patch(self.tekke_kardan(img))
        cls = repeat(self.cls_token, "1 n d -> b n d", b=img.shape[0])
        x = torch.cat((cls, x), dim=1)
        x = self.dropout(x + self.jaygah)
        x = self.transformer(x)
        if self.pool == "cls":
            x = x[:, 0]
        else:
            x = reduce(x, "b n d -> b d", "mean")
        return self.tabaghe_band(self.norm(x))  # لاجیت؛ سافت‌مکس داخل تابع خطاست


def tedad_parametr(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


# ------------------------------------------------------------------ آموزش و ارزیابی
def yek_gam(model, optimizer, tasavir, barchasbha):
    """یک گام: صفر کردن گرادیان، جلو، خطا، عقب، به‌روزرسانی"""
    optimizer.zero_grad()
    khata = F.cross_entropy(model(tasavir), barchasbha)
    khata.backward()
    optimizer.step()
    return khata.item()


def train_epoch(model, optimizer, data_loader, loss_history):
    """یک دور آموزش روی همه‌ی داده‌ها"""
    model.train()
    for i, (tasavir, barchasbha) in enumerate(data_loader):
        khata = yek_gam(model, optimizer, tasavir.to(device), barchasbha.to(device))
        if i % 100 == 0:
            print(f"   دسته {i} از {len(data_loader)} - خطا: {khata:.4f}")
            loss_history.append(khata)


def evaluate(model, data_loader, loss_history):
    """میانگین خطا روی همه‌ی تصویرها و تعداد پاسخ‌های درست"""
    model.eval()
    majmoo_khata, dorost, tedad = 0.0, 0, 0
    with torch.no_grad():
        for tasavir, barchasbha in data_loader:
            tasavir, barchasbha = tasavir.to(device), barchasbha.to(device)
            emtiaz = model(tasavir)
            majmoo_khata += F.cross_entropy(emtiaz, barchasbha, reduction="sum").item()
            dorost += (emtiaz.argmax(dim=1) == barchasbha).sum().item()
            tedad += barchasbha.shape[0]
    miangin = majmoo_khata / tedad
    loss_history.append(miangin)
    print(f"   میانگین خطا (loss): {miangin:.4f} - دقت (accuracy): {dorost}/{tedad} ({100 * dorost / tedad:.2f}%)")


def amoozesh_ba_tavaghof(model, optimizer, train_loader, val_loader):
    """آموزش با توقف زودهنگام؛ بهترین وزن‌ها (کمترین خطای اعتبارسنجی) برگردانده می‌شود"""
    kahesh_lr = optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)
    train_loss, val_loss = [], []
    behtarin_khata = float("inf")
    behtarin_vazn = copy.deepcopy(model.state_dict())
    behtarin_epoch, bedoone_behbood = 0, 0
    for epoch in range(1, tanzimat["max_epoch"] + 1):
        print(f"دور {epoch} از {tanzimat['max_epoch']}")
        train_epoch(model, optimizer, train_loader, train_loss)
        evaluate(model, val_loader, val_loss)
        kahesh_lr.step(val_loss[-1])
        if val_loss[-1] < behtarin_khata:
            behtarin_khata = val_loss[-1]
            behtarin_vazn = copy.deepcopy(model.state_dict())
            behtarin_epoch = epoch
            bedoone_behbood = 0
        else:
            bedoone_behbood += 1
            if bedoone_behbood >= tanzimat["sabr"]:
                print("توقف زودهنگام")
                break
    print(f"بهترین دور: {behtarin_epoch} با خطای {behtarin_khata:.4f}")
    return behtarin_vazn, train_loss, val_loss


def zakhire(model):
    """ذخیره‌ی وزن‌ها با هر دو نام"""
    torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
    torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")


# ------------------------------------------------------------------ نمودارها
def rasm_khata(train_loss, val_loss):
    # متن نمودارها انگلیسی است چون matplotlib حروف فارسی را جدا جدا می‌نویسد
    plt.figure(figsize=(7, 4))
    plt.plot(train_loss, marker="o", label="train loss (every 100 batches)")
    plt.plot(val_loss, marker="s", label="validation loss")
    plt.xlabel("epoch")
    plt.ylabel("cross-entropy")
    plt.legend()
    plt.grid(True)
    plt.show()


def pishbini(model, data_loader):
    """تصویرها، برچسب‌های درست و پیش‌بینی‌ها"""
    model.eval()
    tasavir, vaghei, pishbini_shode = [], [], []
    with torch.no_grad():
        for x, y in data_loader:
            tasavir.append(x.cpu())
            vaghei.append(y.cpu())
            pishbini_shode.append(model(x.to(device)).argmax(dim=1).cpu())
    return torch.cat(tasavir), torch.cat(vaghei).numpy(), torch.cat(pishbini_shode).numpy()


def plot_confusion_matrix(model, data_loader, class_names):
    """ماتریس درهم‌ریختگی"""
    _, vaghei, pish = pishbini(model, data_loader)
    matris = confusion_matrix(vaghei, pish, labels=list(range(len(class_names))))
    plt.figure(figsize=(8, 6))
    sns.heatmap(matris, annot=True, fmt="d", cmap="YlGnBu", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted label")
    plt.ylabel("True label")
    plt.title("Confusion matrix")
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """از هر کلاس چند نمونه با برچسب درست و پیش‌بینی"""
    tasavir, vaghei, pish = pishbini(model, data_loader)
    satr, sotoon = len(class_names), samples_per_class
    shekl, mehvarha = plt.subplots(satr, sotoon, figsize=(2.5 * sotoon, 2.5 * satr), squeeze=False)
    for mehvar in mehvarha.ravel():
        mehvar.axis("off")
    for kelas in range(satr):
        for j, i in enumerate(np.where(vaghei == kelas)[0][:sotoon]):
            rang = "green" if pish[i] == kelas else "red"
            mehvarha[kelas, j].imshow(tasavir[i, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            mehvarha[kelas, j].set_title(
                f"True: {class_names[kelas]}\nPred: {class_names[pish[i]]}", fontsize=8, color=rang
            )
    shekl.tight_layout()
    plt.show()


# ------------------------------------------------------------------ اجرا
sabet_kardan_seed(tanzimat["seed"])
amade_kardan_dade()
train_loader, val_loader, test_loader, class_names = sakht_loaderha()
namayesh_nemoone(train_loader, class_names)

model = ViT(**tanzimat["model"]).to(device)
print(f"تعداد پارامترها: {tedad_parametr(model):,}")
optimizer = optim.Adam(model.parameters(), lr=tanzimat["lr"], weight_decay=tanzimat["weight_decay"])

shoroo = time.time()
behtarin_vazn, train_loss_history, val_loss_history = amoozesh_ba_tavaghof(model, optimizer, train_loader, val_loader)
print(f"زمان آموزش: {time.time() - shoroo:.1f} ثانیه")

# برگرداندن بهترین وزن‌ها، بعد تست
model.load_state_dict(behtarin_vazn)
test_loss_history = []
print("نتیجه روی داده تست:")
evaluate(model, test_loader, test_loss_history)

zakhire(model)
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

rasm_khata(train_loss_history, val_loss_history)
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
