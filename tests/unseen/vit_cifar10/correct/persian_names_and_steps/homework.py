# تمرین دوم یادگیری عمیق
# شماره دانشجویی: 400102901
# پیاده‌سازی ViT و ResNet18 روی CIFAR-10

import csv
import math
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102901"

dastgah = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device = dastgah
torch.manual_seed(42)

# ------------------------------------------------------------
# خواندن داده‌ها
# ------------------------------------------------------------
MEAN = (0.4914, 0.4822, 0.4465)  # میانگین هر کانال
STD = (0.2470, 0.2435, 0.2616)  # انحراف معیار هر کانال
BATCH_SIZE = 50

file_zip = zipfile.ZipFile("dataset.zip")
file_zip.extractall("data")
file_zip.close()

# تبدیل ساده برای اعتبارسنجی و آزمون
tabdil_sade = transforms.Compose([
    transforms.ToTensor(),
    transforms.Normalize(MEAN, STD),
])
# تبدیل آموزش: برش تصادفی و آینه کردن
tabdil_amoozesh = transforms.Compose([
    transforms.RandomCrop(32, padding=4),
    transforms.RandomHorizontalFlip(p=0.5),
    transforms.ToTensor(),
    transforms.Normalize(MEAN, STD),
])

# دو شیء جدا، تا تصاویر اعتبارسنجی دستکاری نشوند
dade_amoozesh = datasets.ImageFolder("data/train", transform=tabdil_amoozesh)
dade_sade = datasets.ImageFolder("data/train", transform=tabdil_sade)
dade_azmoon = datasets.ImageFolder("data/test", transform=tabdil_sade)
class_names = dade_azmoon.classes
tedad_kelas = len(class_names)

# ده درصد برای اعتبارسنجی کنار گذاشته می‌شود
tedad_kol = len(dade_sade)
tartib = torch.randperm(tedad_kol, generator=torch.Generator().manual_seed(42)).tolist()
tedad_etebar = tedad_kol // 10
shomare_etebar = tartib[:tedad_etebar]
shomare_amoozesh = tartib[tedad_etebar:]

loaders = {}
loaders["train"] = DataLoader(Subset(dade_amoozesh, shomare_amoozesh), batch_size=BATCH_SIZE, shuffle=True)
loaders["validation"] = DataLoader(Subset(dade_sade, shomare_etebar), batch_size=200, shuffle=False)
test_loader = DataLoader(dade_azmoon, batch_size=200, shuffle=False)
print("train:", len(shomare_amoozesh), "validation:", len(shomare_etebar), "test:", len(dade_azmoon))


# ------------------------------------------------------------
# بخش اول: تکه کردن تصویر
# ------------------------------------------------------------
class PatchEmbedding(nn.Module):
    """تصویر را به تکه‌های بدون همپوشانی تقسیم می‌کند و هر تکه را به یک بردار تبدیل می‌کند."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.andaze_tasvir = image_size
        self.andaze_tekke = patch_size
        self.tedad_dar_radif = image_size // patch_size  # تعداد تکه در هر ردیف
        self.tedad_tekke = self.tedad_dar_radif * self.tedad_dar_radif
        tool_tekke = in_channels * patch_size * patch_size  # طول بردار هر تکه
        self.laye_khatti = nn.Linear(tool_tekke, dim)

    def forward(self, images):
        # images: (B, C, H, W)
        p = self.andaze_tekke
        tekke_ha = []
        # ردیف به ردیف، از بالا سمت چپ
        for radif in range(self.tedad_dar_radif):
            for sotoon in range(self.tedad_dar_radif):
                az_y = radif * p
                ta_y = az_y + p
                az_x = sotoon * p
                ta_x = az_x + p
                tekke = images[:, :, az_y:ta_y, az_x:ta_x]  # (B, C, p, p)
                tekke = tekke.flatten(1)  # (B, C*p*p)
                tekke_ha.append(tekke)
        hame = torch.stack(tekke_ha, dim=1)  # (B, N, C*p*p)
        khoruji = self.laye_khatti(hame)  # (B, N, dim)
        return khoruji


# ------------------------------------------------------------
# بخش دوم: مکان‌ها
# ------------------------------------------------------------
def sinusoidal_positions(tokens, dim):
    """جدول سینوسی مقاله Attention is all you need."""
    jadval = torch.zeros(tokens, dim)  # (tokens, dim)
    makan = torch.arange(tokens, dtype=torch.float64)  # (tokens,)
    for i in range(dim // 2):
        makhraj = 10000.0 ** (2 * i / dim)
        zavie = makan / makhraj  # (tokens,)
        jadval[:, 2 * i] = torch.sin(zavie)  # ستون زوج
        jadval[:, 2 * i + 1] = torch.cos(zavie)  # ستون فرد
    return jadval


# ------------------------------------------------------------
# بخش سوم: توجه چندسر
# ------------------------------------------------------------
class MultiHeadSelfAttention(nn.Module):
    """توجه چندسر که می‌تواند وزن‌ها را هم برگرداند."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.tedad_sar = heads
        self.bod_sar = dim // heads  # بعد هر سر
        self.laye_porsesh = nn.Linear(dim, dim)  # query
        self.laye_kelid = nn.Linear(dim, dim)  # key
        self.laye_meghdar = nn.Linear(dim, dim)  # value
        self.laye_khoruji = nn.Linear(dim, dim)
        self.hazf = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        # x: (B, N, dim)
        porsesh = self.laye_porsesh(x)  # (B, N, dim)
        kelid = self.laye_kelid(x)  # (B, N, dim)
        meghdar = self.laye_meghdar(x)  # (B, N, dim)

        natije_sar_ha = []
        vazn_sar_ha = []
        for sar in range(self.tedad_sar):
            aval = sar * self.bod_sar
            akhar = aval + self.bod_sar
            q = porsesh[:, :, aval:akhar]  # (B, N, d)
            k = kelid[:, :, aval:akhar]  # (B, N, d)
            v = meghdar[:, :, aval:akhar]  # (B, N, d)
            k_taranahade = k.transpose(1, 2)  # (B, d, N)
            emtiaz = torch.bmm(q, k_taranahade)  # (B, N, N)
            emtiaz = emtiaz / math.sqrt(self.bod_sar)
            vazn = torch.softmax(emtiaz, dim=2)  # جمع هر سطر یک است
            vazn_sar_ha.append(vazn)  # قبل از حذف تصادفی
            vazn_hazf_shode = self.hazf(vazn)
            natije = torch.bmm(vazn_hazf_shode, v)  # (B, N, d)
            natije_sar_ha.append(natije)

        kenar_ham = torch.cat(natije_sar_ha, dim=2)  # (B, N, dim)
        khoruji = self.laye_khoruji(kenar_ham)  # (B, N, dim)
        if return_weights:
            vazn_ha = torch.stack(vazn_sar_ha, dim=1)  # (B, heads, N, N)
            return khoruji, vazn_ha
        return khoruji


# ------------------------------------------------------------
# بخش چهارم: یک بلوک
# ------------------------------------------------------------
class EncoderBlock(nn.Module):
    """بلوک pre-norm با دو اتصال باقیمانده."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        bod_miani = int(dim * mlp_ratio)
        self.norm_aval = nn.LayerNorm(dim)
        self.tavajoh = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm_dovom = nn.LayerNorm(dim)
        self.khatti_aval = nn.Linear(dim, bod_miani)
        self.faal_saz = nn.GELU()
        self.hazf_aval = nn.Dropout(dropout)
        self.khatti_dovom = nn.Linear(bod_miani, dim)
        self.hazf_dovom = nn.Dropout(dropout)

    def forward(self, x):
        # زیرلایه اول: توجه
        x_norm = self.norm_aval(x)
        khoruji_tavajoh = self.tavajoh(x_norm)
        x_jadid = x + khoruji_tavajoh
        # زیرلایه دوم: MLP
        y = self.norm_dovom(x_jadid)
        y = self.khatti_aval(y)  # (B, N, bod_miani)
        y = self.faal_saz(y)
        y = self.hazf_aval(y)
        y = self.khatti_dovom(y)  # (B, N, dim)
        y = self.hazf_dovom(y)
        khoruji = x_jadid + y
        return khoruji


# ------------------------------------------------------------
# بخش پنجم: کل مدل
# ------------------------------------------------------------
class VisionTransformer(nn.Module):
    """مدل کامل ViT."""

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
        self.noe_makan = positions
        self.noe_tajmi = pool

        self.tekke_saz = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tedad_token = self.tekke_saz.tedad_tekke

        # توکن کلاس فقط وقتی pool برابر cls است
        if pool == "cls":
            meghdar_avalie = torch.zeros(1, 1, dim)
            nn.init.normal_(meghdar_avalie, mean=0.0, std=0.02)
            self.token_kelas = nn.Parameter(meghdar_avalie)
            tedad_token = tedad_token + 1  # یکی بیشتر

        if positions == "sinusoidal":
            # این جدول آموزش نمی‌بیند
            jadval = sinusoidal_positions(tedad_token, dim)
            self.register_buffer("makan_ha", jadval)
        else:
            meghdar_avalie = torch.zeros(tedad_token, dim)
            nn.init.normal_(meghdar_avalie, mean=0.0, std=0.02)
            self.makan_ha = nn.Parameter(meghdar_avalie)

        self.hazf = nn.Dropout(dropout)
        self.blok_ha = nn.ModuleList()
        for shomare in range(depth):
            blok = EncoderBlock(dim, heads, mlp_ratio, dropout)
            self.blok_ha.append(blok)
        self.norm_akhar = nn.LayerNorm(dim)
        self.tabaghe_band = nn.Linear(dim, num_classes)

    def sakht_token(self, images):
        """ساختن توکن‌های ورودی بلوک اول"""
        token_ha = self.tekke_saz(images)  # (B, N, dim)
        tedad_tasvir = token_ha.shape[0]
        if self.noe_tajmi == "cls":
            kelas = self.token_kelas.repeat(tedad_tasvir, 1, 1)  # (B, 1, dim)
            token_ha = torch.cat([kelas, token_ha], dim=1)  # (B, N+1, dim)
        token_ha = token_ha + self.makan_ha
        token_ha = self.hazf(token_ha)
        return token_ha

    def forward(self, images):
        x = self.sakht_token(images)
        for blok in self.blok_ha:
            x = blok(x)
        x = self.norm_akhar(x)
        if self.noe_tajmi == "cls":
            namayande = x[:, 0, :]  # (B, dim)
        else:
            namayande = torch.mean(x, dim=1)  # (B, dim)
        emtiaz = self.tabaghe_band(namayande)  # (B, num_classes) بدون softmax
        return emtiaz

    def attention(self, images):
        x = self.sakht_token(images)
        tedad_blok = len(self.blok_ha)
        # همه بلوک‌ها به جز آخری
        for shomare in range(tedad_blok - 1):
            x = self.blok_ha[shomare](x)
        blok_akhar = self.blok_ha[tedad_blok - 1]
        x_norm = blok_akhar.norm_aval(x)
        natije, vazn_ha = blok_akhar.tavajoh(x_norm, return_weights=True)
        return vazn_ha  # (B, heads, N, N)


# ------------------------------------------------------------
# نقشه توجه
# ------------------------------------------------------------
def attention_map(model, image):
    """نقشه توجه بلوک آخر، هم اندازه تصویر"""
    halat_ghabli = model.training  # بعدا برمی‌گردانیم
    model.eval()

    dastgah_model = image.device
    for parametr in model.parameters():
        dastgah_model = parametr.device
        break

    with torch.no_grad():
        yek_daste = image.unsqueeze(0)  # (1, C, H, W)
        yek_daste = yek_daste.to(dastgah_model)
        vazn_ha = model.attention(yek_daste)  # (1, heads, N, N)

    if halat_ghabli:
        model.train()
    else:
        model.eval()

    vazn_ha = vazn_ha.cpu()
    miangin = vazn_ha[0].mean(dim=0)  # (N, N) میانگین سرها
    tedad_token = miangin.shape[0]
    zel = int(math.sqrt(tedad_token))  # ضلع شبکه
    if zel * zel == tedad_token:
        # توکن کلاس نداریم: میانگین سطرها
        tavajoh = miangin.mean(dim=0)
    else:
        # سطر توکن کلاس، بدون ستون خودش
        tavajoh = miangin[0, 1:]
    bishine = tavajoh.max().item()
    if bishine > 0:
        tavajoh = tavajoh / bishine

    ertefa = image.shape[1]
    arz = image.shape[2]
    p_y = ertefa // zel
    p_x = arz // zel
    naghshe = torch.zeros(ertefa, arz)
    shomare = 0
    for radif in range(zel):
        for sotoon in range(zel):
            naghshe[radif * p_y : (radif + 1) * p_y, sotoon * p_x : (sotoon + 1) * p_x] = tavajoh[shomare]
            shomare = shomare + 1
    return naghshe


# ------------------------------------------------------------
# شبکه ResNet
# ------------------------------------------------------------
class BasicBlock(nn.Module):
    """دو کانولوشن و یک میانبر"""

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.kanv1 = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.kanv2 = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        # اگر شکل عوض شود میانبر هم باید عوض شود
        self.taghir_shekl = False
        if stride != 1:
            self.taghir_shekl = True
        if in_channels != channels:
            self.taghir_shekl = True
        if self.taghir_shekl:
            self.kanv_mianbor = nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False)
            self.norm_mianbor = nn.BatchNorm2d(channels)

    def forward(self, x):
        # مسیر اصلی
        y = self.kanv1(x)
        y = self.norm1(y)
        y = torch.relu(y)
        y = self.kanv2(y)
        y = self.norm2(y)
        # میانبر
        if self.taghir_shekl:
            mianbor = self.kanv_mianbor(x)
            mianbor = self.norm_mianbor(mianbor)
        else:
            mianbor = x
        jam = y + mianbor
        return torch.relu(jam)


class ResNet18(nn.Module):
    """یک لایه ورودی، هشت بلوک و یک لایه خطی"""

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.kanv_vorudi = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.norm_vorudi = nn.BatchNorm2d(width)
        # گروه اول: همان اندازه
        self.blok1 = BasicBlock(width, width, 1)
        self.blok2 = BasicBlock(width, width, 1)
        # گروه دوم: نصف اندازه، دو برابر کانال
        self.blok3 = BasicBlock(width, 2 * width, 2)
        self.blok4 = BasicBlock(2 * width, 2 * width, 1)
        # گروه سوم
        self.blok5 = BasicBlock(2 * width, 4 * width, 2)
        self.blok6 = BasicBlock(4 * width, 4 * width, 1)
        # گروه چهارم
        self.blok7 = BasicBlock(4 * width, 8 * width, 2)
        self.blok8 = BasicBlock(8 * width, 8 * width, 1)
        self.laye_akhar = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        # images: (B, 3, 32, 32)
        x = self.kanv_vorudi(images)
        x = self.norm_vorudi(x)
        x = torch.relu(x)  # (B, w, 32, 32)
        x = self.blok1(x)
        x = self.blok2(x)  # (B, w, 32, 32)
        x = self.blok3(x)
        x = self.blok4(x)  # (B, 2w, 16, 16)
        x = self.blok5(x)
        x = self.blok6(x)  # (B, 4w, 8, 8)
        x = self.blok7(x)
        x = self.blok8(x)  # (B, 8w, 4, 4)
        x = x.mean(dim=3)  # (B, 8w, 4)
        x = x.mean(dim=2)  # (B, 8w)
        emtiaz = self.laye_akhar(x)
        return emtiaz


def parameter_table(model):
    """تعداد پارامترهای هر بخش مدل"""
    jadval = []
    shomorde_shode = 0
    for nam, bakhsh in model.named_children():
        tedad = 0
        for parametr in bakhsh.parameters():
            tedad = tedad + parametr.numel()
        jadval.append((nam, tedad))
        shomorde_shode = shomorde_shode + tedad
    # پارامترهایی که داخل هیچ لایه‌ای نیستند
    kol = 0
    for parametr in model.parameters():
        kol = kol + parametr.numel()
    baghi = kol - shomorde_shode
    jadval.append(("token_kelas va makan_ha", baghi))
    return jadval


# ------------------------------------------------------------
# آموزش
# ------------------------------------------------------------
def warmup_cosine(step, warmup_steps, total_steps):
    """ضریب نرخ یادگیری"""
    # بعد از پایان
    if step >= total_steps:
        return 0.0
    # گرم شدن خطی
    if step < warmup_steps:
        zarib = step / warmup_steps
        return zarib
    # نیم موج کسینوسی
    gam_gozashte = step - warmup_steps
    gam_kol = total_steps - warmup_steps
    nesbat = gam_gozashte / gam_kol  # از صفر تا یک
    zarib = 0.5 * (1.0 + math.cos(math.pi * nesbat))
    return zarib


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    """یک دور آموزش"""
    model.train()
    jam_khata = 0.0
    tedad_dorost = 0
    tedad_kol = 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)

        # مسیر رفت
        emtiaz = model(images)
        khata = criterion(emtiaz, labels)
        # مسیر برگشت
        optimizer.zero_grad()
        khata.backward()
        optimizer.step()
        # نرخ یادگیری بعد از هر دسته عوض می‌شود
        if scheduler is not None:
            scheduler.step()

        tedad_daste = images.shape[0]
        jam_khata = jam_khata + khata.item() * tedad_daste
        pishbini = torch.argmax(emtiaz, dim=1)
        dorost = (pishbini == labels).sum().item()
        tedad_dorost = tedad_dorost + dorost
        tedad_kol = tedad_kol + tedad_daste

    miangin_khata = jam_khata / tedad_kol
    deghat = tedad_dorost / tedad_kol
    return miangin_khata, deghat


def evaluate(model, loader, criterion, device):
    """سنجش مدل بدون آموزش"""
    model.eval()
    jam_khata = 0.0
    hame_barchasb = []
    hame_pishbini = []
    hame_ehtemal = []
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            emtiaz = model(images)
            khata = criterion(emtiaz, labels)
            jam_khata = jam_khata + khata.item() * images.shape[0]
            ehtemal = torch.softmax(emtiaz, dim=1)
            pishbini = torch.argmax(emtiaz, dim=1)
            hame_barchasb.append(labels.cpu())
            hame_pishbini.append(pishbini.cpu())
            hame_ehtemal.append(ehtemal.cpu())

    barchasb = torch.cat(hame_barchasb, dim=0)  # (n,)
    pishbini = torch.cat(hame_pishbini, dim=0)  # (n,)
    ehtemal = torch.cat(hame_ehtemal, dim=0)  # (n, classes)
    tedad_kol = barchasb.shape[0]
    tedad_dorost = (barchasb == pishbini).sum().item()

    natije = {}
    natije["loss"] = jam_khata / tedad_kol
    natije["accuracy"] = tedad_dorost / tedad_kol
    natije["targets"] = barchasb
    natije["predictions"] = pishbini
    natije["probabilities"] = ehtemal
    return natije


def fit(model, loaders, epochs, device):
    """آموزش کامل و برگرداندن بهترین وزن‌ها"""
    model = model.to(device)
    tabe_khata = nn.CrossEntropyLoss()
    behine_saz = optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.05)

    tedad_daste = len(loaders["train"])
    gam_kol = tedad_daste * epochs
    gam_garm = gam_kol // 10  # ده درصد اول برای گرم شدن

    def zarib_gam(gam):
        return warmup_cosine(gam, gam_garm, gam_kol)

    barname = optim.lr_scheduler.LambdaLR(behine_saz, zarib_gam)

    tarikhche = {
        "khata_amoozesh": [],
        "deghat_amoozesh": [],
        "khata_etebar": [],
        "deghat_etebar": [],
    }
    behtarin_deghat = -1.0
    behtarin_vazn = None
    for dor in range(epochs):
        khata, deghat = train_epoch(model, loaders["train"], tabe_khata, behine_saz, barname, device)
        natije = evaluate(model, loaders["validation"], tabe_khata, device)
        tarikhche["khata_amoozesh"].append(khata)
        tarikhche["deghat_amoozesh"].append(deghat)
        tarikhche["khata_etebar"].append(natije["loss"])
        tarikhche["deghat_etebar"].append(natije["accuracy"])
        print("epoch", dor + 1, "loss", round(khata, 4), "acc", round(deghat, 4), "val acc", natije["accuracy"])

        # فقط اگر واقعا بهتر شد (در تساوی، اولی می‌ماند)
        if natije["accuracy"] > behtarin_deghat:
            behtarin_deghat = natije["accuracy"]
            # کپی می‌گیریم چون state_dict فقط ارجاع است
            behtarin_vazn = {}
            for nam, meghdar in model.state_dict().items():
                behtarin_vazn[nam] = meghdar.clone()

    if behtarin_vazn is not None:
        model.load_state_dict(behtarin_vazn)
    return tarikhche


# ------------------------------------------------------------
# معیارها (فقط با numpy)
# ------------------------------------------------------------
def noghat_roc(mosbat, emtiaz):
    """نقاط منحنی ROC از (0,0) تا (1,1). نمره‌های مساوی با هم یک نقطه می‌شوند."""
    tedad_mosbat = int(np.sum(mosbat))
    tedad_manfi = len(mosbat) - tedad_mosbat
    tartib = np.argsort(-emtiaz, kind="stable")  # از بزرگ به کوچک
    emtiaz_moratab = emtiaz[tartib].tolist()
    mosbat_moratab = mosbat[tartib].tolist()
    x = [0.0]
    y = [0.0]
    mosbat_dorost = 0
    mosbat_ghalat = 0
    tedad = len(emtiaz_moratab)
    for i in range(tedad):
        if mosbat_moratab[i]:
            mosbat_dorost = mosbat_dorost + 1
        else:
            mosbat_ghalat = mosbat_ghalat + 1
        # اگر نمره بعدی برابر است، هنوز نقطه نمی‌گذاریم
        if i + 1 < tedad and emtiaz_moratab[i + 1] == emtiaz_moratab[i]:
            continue
        x.append(mosbat_ghalat / tedad_manfi)
        y.append(mosbat_dorost / tedad_mosbat)
    return x, y


def masahat(x, y):
    """مساحت زیر منحنی با روش ذوزنقه"""
    jam = 0.0
    for i in range(1, len(x)):
        ghaede = x[i] - x[i - 1]
        ertefa = (y[i] + y[i - 1]) / 2
        jam = jam + ghaede * ertefa
    return jam


def classification_metrics(targets, probabilities):
    """همه معیارها"""
    barchasb = np.asarray(targets)  # (n,)
    ehtemal = np.asarray(probabilities)  # (n, classes)
    tedad = ehtemal.shape[0]
    kelas_ha = ehtemal.shape[1]
    pishbini = np.argmax(ehtemal, axis=1)

    # ماتریس درهم‌ریختگی: سطر = واقعی، ستون = پیش‌بینی
    matris = np.zeros((kelas_ha, kelas_ha), dtype=np.int64)
    for i in range(tedad):
        vaghei = int(barchasb[i])
        hads = int(pishbini[i])
        matris[vaghei, hads] = matris[vaghei, hads] + 1

    precision = np.zeros(kelas_ha)
    recall = np.zeros(kelas_ha)
    f1 = np.zeros(kelas_ha)
    support = np.zeros(kelas_ha, dtype=np.int64)
    roc_auc = np.zeros(kelas_ha)
    for c in range(kelas_ha):
        dorost = matris[c, c]
        jam_sotoon = matris[:, c].sum()
        jam_satr = matris[c, :].sum()
        support[c] = jam_satr
        if jam_sotoon > 0:
            precision[c] = dorost / jam_sotoon
        if jam_satr > 0:
            recall[c] = dorost / jam_satr
        if precision[c] + recall[c] > 0:
            f1[c] = 2 * precision[c] * recall[c] / (precision[c] + recall[c])
        mosbat = barchasb == c
        if mosbat.sum() == 0 or mosbat.sum() == tedad:
            roc_auc[c] = np.nan
        else:
            x, y = noghat_roc(mosbat, ehtemal[:, c])
            roc_auc[c] = masahat(x, y)

    natije = {
        "confusion": matris,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": roc_auc,
        "accuracy": float(np.trace(matris) / tedad),
    }

    # میانگین‌ها: فقط روی کلاس‌هایی که نمونه دارند
    for nam in ["precision", "recall", "f1", "roc_auc"]:
        jam_sade = 0.0
        jam_vazni = 0.0
        tedad_kelas_ha = 0
        jam_vazn = 0
        for c in range(kelas_ha):
            meghdar = natije[nam][c]
            if support[c] == 0:
                continue
            if np.isnan(meghdar):
                continue
            jam_sade = jam_sade + meghdar
            jam_vazni = jam_vazni + meghdar * support[c]
            tedad_kelas_ha = tedad_kelas_ha + 1
            jam_vazn = jam_vazn + support[c]
        if tedad_kelas_ha > 0:
            natije["macro_" + nam] = float(jam_sade / tedad_kelas_ha)
            natije["weighted_" + nam] = float(jam_vazni / jam_vazn)
        else:
            natije["macro_" + nam] = float("nan")
            natije["weighted_" + nam] = float("nan")
    return natije


def baz_kardan(nam, meghdar, satr_ha):
    """دیکشنری‌ها و آرایه‌ها را باز می‌کند و در satr_ha می‌ریزد"""
    if isinstance(meghdar, dict):
        for kelid in meghdar:
            if nam == "":
                nam_jadid = str(kelid)
            else:
                nam_jadid = nam + "." + str(kelid)
            baz_kardan(nam_jadid, meghdar[kelid], satr_ha)
        return
    araye = np.asarray(meghdar)
    if araye.ndim == 0:
        satr_ha.append([nam, float(araye)])
    elif araye.ndim == 1:
        for i in range(len(araye)):
            satr_ha.append([nam + "." + str(i), float(araye[i])])
    # ماتریس نوشته نمی‌شود


def export_metrics(metrics, path):
    """نوشتن معیارها در فایل csv"""
    satr_ha = []
    baz_kardan("", metrics, satr_ha)
    file = open(path, "w", newline="", encoding="utf-8")
    nevisande = csv.writer(file)
    nevisande.writerow(["metric", "value"])
    for satr in satr_ha:
        nevisande.writerow(satr)
    file.close()


# ------------------------------------------------------------
# نمودارها
# ------------------------------------------------------------
def bargardan(image, mean, std):
    """برگرداندن نرمال‌سازی یک تصویر: (C, H, W) -> (H, W, C)"""
    tasvir = image.detach().cpu().numpy().copy()
    for kanal in range(tasvir.shape[0]):
        tasvir[kanal] = tasvir[kanal] * float(std[kanal]) + float(mean[kanal])
    tasvir = np.clip(tasvir, 0.0, 1.0)
    tasvir = np.transpose(tasvir, (1, 2, 0))
    return tasvir


def plot_learning_curves(history):
    tedad_dor = len(history["khata_amoozesh"])
    dor_ha = list(range(1, tedad_dor + 1))
    shekl = plt.figure(figsize=(10, 4))

    # خطا
    mehvar_khata = shekl.add_subplot(1, 2, 1)
    mehvar_khata.plot(dor_ha, history["khata_amoozesh"], "b-o", label="training")
    mehvar_khata.plot(dor_ha, history["khata_etebar"], "r-o", label="validation")
    mehvar_khata.set_xlabel("Epoch")
    mehvar_khata.set_ylabel("Loss")
    mehvar_khata.set_title("Loss")
    mehvar_khata.legend()

    # دقت
    mehvar_deghat = shekl.add_subplot(1, 2, 2)
    mehvar_deghat.plot(dor_ha, history["deghat_amoozesh"], "b-o", label="training")
    mehvar_deghat.plot(dor_ha, history["deghat_etebar"], "r-o", label="validation")
    mehvar_deghat.set_xlabel("Epoch")
    mehvar_deghat.set_ylabel("Accuracy")
    mehvar_deghat.set_title("Accuracy")
    mehvar_deghat.legend()


def plot_confusion_matrix(matrix, class_names):
    matris = np.asarray(matrix)
    tedad = len(class_names)
    bishine = matris.max()
    shekl = plt.figure(figsize=(8, 8))
    mehvar = shekl.add_subplot(1, 1, 1)
    mehvar.imshow(matris, cmap="Oranges")
    mehvar.set_xticks(list(range(tedad)))
    mehvar.set_xticklabels(class_names, rotation=45)
    mehvar.set_yticks(list(range(tedad)))
    mehvar.set_yticklabels(class_names)
    mehvar.set_xlabel("Predicted")
    mehvar.set_ylabel("True")
    mehvar.set_title("Confusion matrix")
    for i in range(tedad):
        for j in range(tedad):
            # رنگ نوشته باید خوانا باشد
            if matris[i, j] > bishine / 2:
                rang = "white"
            else:
                rang = "black"
            mehvar.text(j, i, str(int(matris[i, j])), ha="center", va="center", color=rang)


def plot_roc(targets, probabilities, class_names):
    barchasb = np.asarray(targets)
    ehtemal = np.asarray(probabilities)
    shekl = plt.figure(figsize=(7, 7))
    mehvar = shekl.add_subplot(1, 1, 1)
    for c in range(len(class_names)):
        mosbat = barchasb == c
        if mosbat.sum() == 0 or mosbat.sum() == len(barchasb):
            continue  # منحنی تعریف نمی‌شود
        x, y = noghat_roc(mosbat, ehtemal[:, c])
        s = masahat(x, y)
        mehvar.plot(x, y, label=class_names[c] + " AUC=" + str(round(s, 3)))
    mehvar.plot([0, 1], [0, 1], "k:", label="random")
    mehvar.set_xlabel("False positive rate")
    mehvar.set_ylabel("True positive rate")
    mehvar.set_title("ROC")
    mehvar.legend()


def plot_attention(model, images, labels, class_names, mean, std):
    tedad = len(images)
    shekl = plt.figure(figsize=(8, 3 * tedad))
    for i in range(tedad):
        tasvir = bargardan(images[i], mean, std)
        naghshe = attention_map(model, images[i])
        naghshe = naghshe.numpy()
        nam = class_names[int(labels[i])]
        # ستون اول: خود تصویر
        mehvar = shekl.add_subplot(tedad, 3, 3 * i + 1)
        mehvar.imshow(tasvir)
        mehvar.set_title(nam)
        mehvar.axis("off")
        # ستون دوم: نقشه
        mehvar = shekl.add_subplot(tedad, 3, 3 * i + 2)
        mehvar.imshow(naghshe, cmap="gray", vmin=0, vmax=1)
        mehvar.set_title("attention map")
        mehvar.axis("off")
        # ستون سوم: نقشه روی تصویر
        mehvar = shekl.add_subplot(tedad, 3, 3 * i + 3)
        mehvar.imshow(tasvir)
        mehvar.imshow(naghshe, cmap="jet", alpha=0.4, vmin=0, vmax=1)
        mehvar.set_title("overlay")
        mehvar.axis("off")


def plot_top3(images, labels, probabilities, class_names, mean, std):
    ehtemal_ha = np.asarray(probabilities)
    tedad = len(images)
    shekl = plt.figure(figsize=(3 * tedad, 4))
    for i in range(tedad):
        tasvir = bargardan(images[i], mean, std)
        ehtemal = ehtemal_ha[i]
        tartib = np.argsort(-ehtemal, kind="stable")  # از محتمل‌ترین
        matn = ""
        for rotbe in range(min(3, len(tartib))):
            c = int(tartib[rotbe])
            darsad = 100 * float(ehtemal[c])
            matn = matn + str(rotbe + 1) + ") " + class_names[c] + " " + str(round(darsad, 1)) + "%\n"
        mehvar = shekl.add_subplot(1, tedad, i + 1)
        mehvar.imshow(tasvir)
        mehvar.set_title("true: " + class_names[int(labels[i])])
        mehvar.text(0.5, -0.05, matn, transform=mehvar.transAxes, ha="center", va="top")
        mehvar.axis("off")


# ------------------------------------------------------------
# آموزش هر دو مدل
# ------------------------------------------------------------
VIT_EPOCHS = 15
RESNET_EPOCHS = 12

zaman_shoroo = time.time()
vit = VisionTransformer(
    image_size=32,
    patch_size=4,
    num_classes=tedad_kelas,
    dim=96,
    depth=6,
    heads=4,
    mlp_ratio=2.0,
    dropout=0.0,
    positions="learned",
    pool="cls",
)
vit_history = fit(vit, loaders, VIT_EPOCHS, dastgah)
torch.save(vit.state_dict(), STUDENT_ID + "_CIFAR10_vit.pth")
print("ViT:", round(time.time() - zaman_shoroo), "s")

zaman_shoroo = time.time()
resnet = ResNet18(num_classes=tedad_kelas, width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, dastgah)
torch.save(resnet.state_dict(), STUDENT_ID + "_CIFAR10_resnet.pth")
print("ResNet:", round(time.time() - zaman_shoroo), "s")

# ------------------------------------------------------------
# مقایسه روی تصاویر آزمون (فقط یک بار)
# ------------------------------------------------------------
tabe_khata = nn.CrossEntropyLoss()

natije_vit = evaluate(vit, test_loader, tabe_khata, dastgah)
meyar_vit = classification_metrics(natije_vit["targets"], natije_vit["probabilities"])
print("ViT test accuracy:", natije_vit["accuracy"])
print(parameter_table(vit))
plot_learning_curves(vit_history)
plot_confusion_matrix(meyar_vit["confusion"], class_names)
plot_roc(natije_vit["targets"], natije_vit["probabilities"], class_names)

natije_resnet = evaluate(resnet, test_loader, tabe_khata, dastgah)
meyar_resnet = classification_metrics(natije_resnet["targets"], natije_resnet["probabilities"])
print("ResNet test accuracy:", natije_resnet["accuracy"])
print(parameter_table(resnet))
plot_learning_curves(resnet_history)
plot_confusion_matrix(meyar_resnet["confusion"], class_names)
plot_roc(natije_resnet["targets"], natije_resnet["probabilities"], class_names)

# برای هر کلاس نام آن را در فایل می‌نویسیم
hame_meyar = {}
for nam_model, meyar in [("vit", meyar_vit), ("resnet", meyar_resnet)]:
    hame_meyar[nam_model] = {}
    for nam, meghdar in meyar.items():
        if nam in ["precision", "recall", "f1", "support", "roc_auc"]:
            ba_nam = {}
            for c in range(tedad_kelas):
                ba_nam[class_names[c]] = meghdar[c]
            hame_meyar[nam_model][nam] = ba_nam
        else:
            hame_meyar[nam_model][nam] = meghdar
export_metrics(hame_meyar, STUDENT_ID + "_metrics.csv")

# شش تصویر اول آزمون
daste_tasvir, daste_barchasb = next(iter(test_loader))
daste_tasvir = daste_tasvir[:6]
daste_barchasb = daste_barchasb[:6]
plot_attention(vit, daste_tasvir, daste_barchasb, class_names, MEAN, STD)
plot_top3(daste_tasvir, daste_barchasb, natije_vit["probabilities"][:6], class_names, MEAN, STD)

# ------------------------------------------------------------
# مطالعه: هر بار فقط یک مقدار عوض می‌شود
# ------------------------------------------------------------
ejraye_motalee = False  # جدول آماده است؛ برای اجرای دوباره True کنید

sotoon_ha = ["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
             "validation_accuracy"]  # fmt: skip


def yek_satr(patch_size, dim, depth, heads, mlp_ratio, positions, epochs, seed):
    """آموزش یک مدل تازه و ساختن سطر آن"""
    torch.manual_seed(seed)
    model_tazeh = VisionTransformer(
        patch_size=patch_size,
        num_classes=tedad_kelas,
        dim=dim,
        depth=depth,
        heads=heads,
        mlp_ratio=mlp_ratio,
        dropout=0.0,
        positions=positions,
    )
    fit(model_tazeh, loaders, epochs, dastgah)
    natije = evaluate(model_tazeh, loaders["validation"], tabe_khata, dastgah)
    tedad_parametr = 0
    for parametr in model_tazeh.parameters():
        tedad_parametr = tedad_parametr + parametr.numel()
    return [patch_size, dim, depth, heads, mlp_ratio, positions, epochs, seed, tedad_parametr,
            round(natije["accuracy"], 4)]  # fmt: skip


if ejraye_motalee:
    satr_ha = []
    # پایه با سه بذر
    satr_ha.append(yek_satr(8, 48, 2, 4, 2.0, "learned", 8, 10))
    satr_ha.append(yek_satr(8, 48, 2, 4, 2.0, "learned", 8, 20))
    satr_ha.append(yek_satr(8, 48, 2, 4, 2.0, "learned", 8, 30))
    # اندازه تکه
    satr_ha.append(yek_satr(4, 48, 2, 4, 2.0, "learned", 8, 10))
    # پهنا
    satr_ha.append(yek_satr(8, 32, 2, 4, 2.0, "learned", 8, 10))
    satr_ha.append(yek_satr(8, 96, 2, 4, 2.0, "learned", 8, 10))
    # عمق
    satr_ha.append(yek_satr(8, 48, 4, 4, 2.0, "learned", 8, 10))
    # سرها
    satr_ha.append(yek_satr(8, 48, 2, 8, 2.0, "learned", 8, 10))
    # پهنای MLP
    satr_ha.append(yek_satr(8, 48, 2, 4, 4.0, "learned", 8, 10))
    # مکان‌ها
    satr_ha.append(yek_satr(8, 48, 2, 4, 2.0, "sinusoidal", 8, 10))
    file = open(STUDENT_ID + "_study.csv", "w", newline="", encoding="utf-8")
    nevisande = csv.writer(file)
    nevisande.writerow(sotoon_ha)
    nevisande.writerows(satr_ha)
    file.close()
