# -*- coding: utf-8 -*-
# %% [markdown]
# # تمرین سوم: تنظیم دقیق یک ViT از پیش آموزش‌دیده
#
# در این فایل همه‌ی مراحل را قدم به قدم نوشته‌ام تا خودم هم بعداً بفهمم چه کرده‌ام.

# %%
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104901"
RATE = 4e-3  # نرخ یادگیری مرحله‌ی اول
PATIENCE = 5  # صبر: چند دوره بدون بهتر شدن
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## تقسیم داده‌ها


# %%
def stratified_split(labels, per_class, seed):
    """داده‌ها را طوری تقسیم می‌کند که هر بخش از هر کلاس دقیقاً per_class[k] تصویر داشته باشد."""
    # قدم ۱: برچسب‌ها را به لیست عدد صحیح تبدیل می‌کنیم
    barchasb_ha = []
    for barchasb in labels:
        barchasb_ha.append(int(barchasb))

    # قدم ۲: برای هر کلاس فهرست اندیس‌هایش را می‌سازیم
    andis_haye_class = {}
    shomarande = 0
    while shomarande < len(barchasb_ha):
        barchasb = barchasb_ha[shomarande]
        if barchasb not in andis_haye_class:
            andis_haye_class[barchasb] = []
        andis_haye_class[barchasb].append(shomarande)
        shomarande = shomarande + 1

    # قدم ۳: برای هر بخش یک لیست خالی
    tedad_bakhsh = len(per_class)
    bakhsh_ha = []
    while len(bakhsh_ha) < tedad_bakhsh:
        bakhsh_ha.append([])

    # قدم ۴: آیا هر کلاس به اندازه‌ی کافی تصویر دارد؟
    tedad_lazem = int(sum(per_class))
    for nam_class in andis_haye_class:
        tedad_mojood = len(andis_haye_class[nam_class])
        if tedad_mojood < tedad_lazem:
            raise ValueError(f"class {nam_class}: {tedad_mojood} tasvir darad vali {tedad_lazem} lazem ast")

    # قدم ۵: هر کلاس را جدا بُر می‌زنیم و پشت سر هم برش می‌دهیم
    tasadofi = np.random.default_rng(seed)
    for nam_class in sorted(andis_haye_class):
        bor_khorde = tasadofi.permutation(andis_haye_class[nam_class])
        shoroo = 0
        k = 0
        while k < tedad_bakhsh:
            payan = shoroo + int(per_class[k])
            for andis in bor_khorde[shoroo:payan]:
                bakhsh_ha[k].append(int(andis))
            shoroo = payan  # بخش بعدی از همین جا شروع می‌شود، پس اشتراکی نداریم
            k = k + 1

    # قدم ۶: خروجی به صورت tuple از آرایه‌ها
    natije = []
    for bakhsh in bakhsh_ha:
        natije.append(np.array(bakhsh, dtype=np.int64))
    return tuple(natije)


# %% [markdown]
# ## مخلوط کردن تصویرها


# %%
def entekhab_sahm(alpha, generator):
    """سهم تصویر اصلی؛ اگر آلفا صفر باشد سهم یک است."""
    if alpha == 0:
        sahm = 1.0
    else:
        sahm = float(generator.beta(alpha, alpha))
    return sahm


def mixup(images, labels, alpha, generator):
    """هر تصویر را با یک تصویر دیگر از همان دسته مخلوط می‌کند."""
    # سهم
    sahm = entekhab_sahm(alpha, generator)
    # جایگشت: یکی هم برای تصویرها و هم برای برچسب‌ها
    tedad = images.shape[0]
    jaygasht = torch.as_tensor(generator.permutation(tedad), device=images.device)
    tasavir_digar = images[jaygasht]
    barchasb_digar = labels[jaygasht]
    # ترکیب محدب. ضرب تانسور جدید می‌سازد، پس ورودی دست نمی‌خورد
    bakhsh_avval = images * sahm
    bakhsh_dovvom = tasavir_digar * (1 - sahm)
    tasavir_makhloot = bakhsh_avval + bakhsh_dovvom
    return tasavir_makhloot, labels, barchasb_digar, sahm


# %%
def cutmix(images, labels, alpha, generator):
    """یک مستطیل از تصویر دیگر را در همان جا می‌گذارد."""
    sahm = entekhab_sahm(alpha, generator)

    tedad = images.shape[0]
    ertefa = images.shape[2]  # height
    arz = images.shape[3]  # width

    jaygasht = torch.as_tensor(generator.permutation(tedad), device=images.device)
    barchasb_digar = labels[jaygasht]

    # اندازه‌ی مستطیل: مساحتش تقریباً (۱ - سهم) است
    zarib = math.sqrt(1.0 - sahm)
    ertefa_mostatil = int(round(ertefa * zarib))
    arz_mostatil = int(round(arz * zarib))

    # جای مستطیل: کاملاً داخل تصویر انتخاب می‌کنیم تا بریده نشود
    bala = int(generator.integers(0, ertefa - ertefa_mostatil + 1))
    chap = int(generator.integers(0, arz - arz_mostatil + 1))
    payin = bala + ertefa_mostatil
    rast = chap + arz_mostatil

    # روی یک کپی می‌نویسیم، از اصل می‌خوانیم
    tasavir_makhloot = images.clone()
    shomare = 0
    while shomare < tedad:
        shomare_digar = int(jaygasht[shomare])
        tekke = images[shomare_digar, :, bala:payin, chap:rast]
        tasavir_makhloot[shomare, :, bala:payin, chap:rast] = tekke
        shomare = shomare + 1

    # سهم واقعی از روی تعداد پیکسل‌ها (چون ضلع‌ها گرد شده‌اند)
    pixel_haye_mostatil = ertefa_mostatil * arz_mostatil
    kol_pixel_ha = ertefa * arz
    sahm_vaghei = (kol_pixel_ha - pixel_haye_mostatil) / kol_pixel_ha
    return tasavir_makhloot, labels, barchasb_digar, sahm_vaghei


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    khata_a = criterion(logits, labels_a)
    khata_b = criterion(logits, labels_b)
    khata = lam * khata_a + (1 - lam) * khata_b
    return khata


# %% [markdown]
# ## چه چیزی یاد می‌گیرد


# %%
def freeze_backbone(model):
    """فقط سر (head) یاد می‌گیرد."""
    sar, _, _ = parts(model)
    # اول همه خاموش
    for parametr in model.parameters():
        parametr.requires_grad = False
    # بعد فقط سر روشن
    for parametr in sar.parameters():
        parametr.requires_grad = True


# %%
def unfreeze(model, blocks=None):
    """سر و norm و چند بلوک آخر؛ اگر blocks داده نشود همه چیز."""
    hame_chiz = blocks is None

    for parametr in model.parameters():
        parametr.requires_grad = hame_chiz
    if hame_chiz:
        return

    sar, block_ha, norm_akhar = parts(model)
    for parametr in sar.parameters():
        parametr.requires_grad = True
    for parametr in norm_akhar.parameters():
        parametr.requires_grad = True

    # از آخرین بلوک به عقب می‌رویم
    shomare = len(block_ha) - 1
    baghimande = blocks
    while baghimande > 0 and shomare >= 0:
        for parametr in block_ha[shomare].parameters():
            parametr.requires_grad = True
        shomare = shomare - 1
        baghimande = baghimande - 1


# %% [markdown]
# ## آموزش و ارزیابی


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    # بلوک‌هایی که کاملاً یخ زده‌اند باید در حالت ارزیابی باشند
    _, block_ha, _ = parts(model)
    for block in block_ha:
        yad_migirad = False
        for parametr in block.parameters():
            if parametr.requires_grad:
                yad_migirad = True
        if not yad_migirad:
            block.eval()

    majmoo_khata = 0.0
    majmoo_dorost = 0.0
    tedad_kol = 0

    peymayesh = iter(loader)
    edame = True
    while edame:
        try:
            tasavir, barchasb_ha = next(peymayesh)
        except StopIteration:
            edame = False
            continue

        tasavir = tasavir.to(device)
        barchasb_ha = barchasb_ha.to(device)
        tedad = barchasb_ha.size(0)

        # قدم ۱: گرادیان‌های قبلی پاک شوند
        optimizer.zero_grad()

        # قدم ۲: رفت
        if mix is not None:
            tasavir, barchasb_a, barchasb_b, sahm = mix(tasavir, barchasb_ha)
            khorooji = model(tasavir)
            khata = mixed_loss(criterion, khorooji, barchasb_a, barchasb_b, sahm)
            hads = khorooji.argmax(dim=1)
            dorost_a = (hads == barchasb_a).sum().item()
            dorost_b = (hads == barchasb_b).sum().item()
            dorost = float(sahm) * dorost_a + (1 - float(sahm)) * dorost_b
        else:
            khorooji = model(tasavir)
            khata = criterion(khorooji, barchasb_ha)
            hads = khorooji.argmax(dim=1)
            dorost = (hads == barchasb_ha).sum().item()

        # قدم ۳: برگشت و قدم بهینه‌ساز
        khata.backward()
        optimizer.step()

        # قدم ۴: جمع زدن. خطای هر دسته به تعداد تصویرهایش حساب می‌شود
        majmoo_khata = majmoo_khata + khata.item() * tedad
        majmoo_dorost = majmoo_dorost + dorost
        tedad_kol = tedad_kol + tedad

    khata_miangin = majmoo_khata / tedad_kol
    deghat = majmoo_dorost / tedad_kol
    return khata_miangin, deghat


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    majmoo_khata = 0.0
    tedad_dorost = 0
    tedad_kol = 0
    haghighi_ha = []
    hads_ha = []
    for tasavir, barchasb_ha in loader:
        tasavir = tasavir.to(device)
        barchasb_ha = barchasb_ha.to(device)
        with torch.no_grad():
            khorooji = model(tasavir)
            khata = criterion(khorooji, barchasb_ha)
        hads = torch.argmax(khorooji, dim=1)
        tedad = barchasb_ha.size(0)
        majmoo_khata = majmoo_khata + khata.item() * tedad
        tedad_dorost = tedad_dorost + int((hads == barchasb_ha).sum())
        tedad_kol = tedad_kol + tedad
        haghighi_ha.extend(barchasb_ha.tolist())
        hads_ha.extend(hads.tolist())
    return majmoo_khata / tedad_kol, tedad_dorost / tedad_kol, haghighi_ha, hads_ha


# %%
class EarlyStopping:
    """توقف زودهنگام: هر چه مقدار بیشتر، بهتر."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.chizi_dide_shode = False  # هنوز هیچ عددی ندیده‌ایم
        self.behtarin_meghdar = None
        self.behtarin_vazn_ha = {}
        self.bedoone_behbood = 0

    def step(self, value, model):
        meghdar = float(value)

        # آیا بهتر شده؟
        behtar_shode = False
        if math.isnan(meghdar):
            behtar_shode = False
        elif not self.chizi_dide_shode:
            behtar_shode = True
        elif meghdar > self.behtarin_meghdar + self.min_delta:
            behtar_shode = True

        if behtar_shode:
            self.chizi_dide_shode = True
            self.behtarin_meghdar = meghdar
            self.bedoone_behbood = 0
            # کپی صریح از تک تک تانسورها، چون state_dict فقط ارجاع است
            copy_vazn_ha = {}
            for nam, tensor in model.state_dict().items():
                copy_tensor = torch.empty_like(tensor)
                copy_tensor.copy_(tensor)
                copy_vazn_ha[nam] = copy_tensor
            self.behtarin_vazn_ha = copy_vazn_ha
        else:
            self.bedoone_behbood = self.bedoone_behbood + 1

        tavaghof = False
        if self.bedoone_behbood >= self.patience:
            tavaghof = True
        return tavaghof

    def restore(self, model):
        if not self.chizi_dide_shode:
            return
        vazn_haye_feli = model.state_dict()  # ارجاع به خود وزن‌ها
        with torch.no_grad():
            for nam in vazn_haye_feli:
                vazn_haye_feli[nam].copy_(self.behtarin_vazn_ha[nam])


# %%
def parametr_haye_yadgirande(model):
    """لیست پارامترهایی که الان یاد می‌گیرند."""
    list_parametr = []
    for parametr in model.parameters():
        if parametr.requires_grad:
            list_parametr.append(parametr)
    return list_parametr


def fit(model, loaders, epochs, device):
    model = model.to(device)
    epoch_haye_avval = epochs[0]
    epoch_haye_dovvom = epochs[1]

    # تاریخچه
    tarikhche = {
        "khata_amoozesh": [],
        "deghat_amoozesh": [],
        "khata_etebarsanji": [],
        "deghat_etebarsanji": [],
        "nerkh": [],
        "shoroo_marhale_2": [],  # شماره‌ی اولین دوره‌ی مرحله‌ی دوم
    }

    meyar_amoozesh = nn.CrossEntropyLoss(label_smoothing=0.1)
    meyar_etebarsanji = nn.CrossEntropyLoss()
    tasadofi = np.random.default_rng(7)

    def makhloot_kon(tasavir, barchasb_ha):
        # سکه می‌اندازیم: یک سوم هیچ، یک سوم mixup، یک سوم cutmix
        sekke = tasadofi.integers(3)
        if sekke == 0:
            return mixup(tasavir, barchasb_ha, 0, tasadofi)
        elif sekke == 1:
            return mixup(tasavir, barchasb_ha, 0.4, tasadofi)
        else:
            return cutmix(tasavir, barchasb_ha, 1.0, tasadofi)

    # ------------------ مرحله‌ی ۱: فقط سر ------------------
    freeze_backbone(model)
    behinesaz = optim.Adam(parametr_haye_yadgirande(model), lr=RATE)
    # این یکی فقط بهترین وزن‌های مرحله‌ی ۱ را نگه می‌دارد و هیچ وقت متوقف نمی‌کند
    negahdar_1 = EarlyStopping(patience=epoch_haye_avval + 1)
    epoch = 0
    while epoch < epoch_haye_avval:
        khata, deghat = train_one_epoch(model, loaders["train"], behinesaz, meyar_amoozesh, device)
        khata_v, deghat_v, _, _ = evaluate(model, loaders["validation"], meyar_etebarsanji, device)
        tarikhche["khata_amoozesh"].append(khata)
        tarikhche["deghat_amoozesh"].append(deghat)
        tarikhche["khata_etebarsanji"].append(khata_v)
        tarikhche["deghat_etebarsanji"].append(deghat_v)
        tarikhche["nerkh"].append(RATE)
        negahdar_1.step(deghat_v, model)
        print(f"marhale 1, epoch {epoch + 1}: khata {khata:.4f} deghat {deghat:.4f} | val {khata_v:.4f} {deghat_v:.4f}")
        epoch = epoch + 1

    # ------------------ مرحله‌ی ۲: همه چیز ------------------
    unfreeze(model)
    nerkh_shoroo = RATE / 10
    # بهینه‌ساز جدید، بعد از باز کردن وزن‌ها
    behinesaz = optim.Adam(parametr_haye_yadgirande(model), lr=nerkh_shoroo)
    negahdar_2 = EarlyStopping(patience=PATIENCE)
    tarikhche["shoroo_marhale_2"].append(epoch_haye_avval + 1)
    epoch = 0
    tavaghof = False
    while epoch < epoch_haye_dovvom and not tavaghof:
        # نیم‌کسینوس: در شروع یک دهم نرخ مرحله‌ی اول، در پایان نزدیک صفر
        pishraft = epoch / epoch_haye_dovvom
        nerkh = nerkh_shoroo * 0.5 * (1 + math.cos(math.pi * pishraft))
        for gorooh in behinesaz.param_groups:
            gorooh["lr"] = nerkh

        khata, deghat = train_one_epoch(
            model, loaders["train"], behinesaz, meyar_amoozesh, device, mix=makhloot_kon
        )
        khata_v, deghat_v, _, _ = evaluate(model, loaders["validation"], meyar_etebarsanji, device)
        tarikhche["khata_amoozesh"].append(khata)
        tarikhche["deghat_amoozesh"].append(deghat)
        tarikhche["khata_etebarsanji"].append(khata_v)
        tarikhche["deghat_etebarsanji"].append(deghat_v)
        tarikhche["nerkh"].append(nerkh)
        tavaghof = negahdar_2.step(deghat_v, model)
        print(f"marhale 2, epoch {epoch + 1}: khata {khata:.4f} deghat {deghat:.4f} | val {khata_v:.4f} {deghat_v:.4f}")
        epoch = epoch + 1

    # ------------------ بهترین وزن‌های هر دو مرحله ------------------
    marhale_1_behtar_ast = False
    if negahdar_1.chizi_dide_shode:
        if not negahdar_2.chizi_dide_shode:
            marhale_1_behtar_ast = True
        elif negahdar_1.behtarin_meghdar > negahdar_2.behtarin_meghdar:
            marhale_1_behtar_ast = True

    if marhale_1_behtar_ast:
        negahdar_1.restore(model)
    else:
        negahdar_2.restore(model)
    return tarikhche


# %%
def per_class_accuracy(targets, predictions, classes):
    # برای هر کلاس: چند تصویر دارد و چند تا درست بوده
    tedad_tasvir = {}
    tedad_dorost = {}
    for c in range(classes):
        tedad_tasvir[c] = 0
        tedad_dorost[c] = 0

    i = 0
    while i < len(targets):
        haghighi = int(targets[i])
        hads = int(predictions[i])
        tedad_tasvir[haghighi] += 1
        if haghighi == hads:
            tedad_dorost[haghighi] += 1
        i += 1

    natije = np.zeros(classes)
    for c in range(classes):
        if tedad_tasvir[c] == 0:
            natije[c] = np.nan  # کلاسی که اصلاً نیامده
        else:
            natije[c] = tedad_dorost[c] / tedad_tasvir[c]
    return natije


# %% [markdown]
# ## شکل‌ها


# %%
def be_halat_avval(image, mean, std):
    """نرمال‌سازی را برمی‌گرداند: خروجی (ارتفاع، عرض، کانال) بین صفر و یک."""
    tasvir = image.detach().cpu().clone()
    kanal = 0
    while kanal < tasvir.shape[0]:
        tasvir[kanal] = tasvir[kanal] * float(std[kanal]) + float(mean[kanal])
        kanal = kanal + 1
    tasvir = torch.clamp(tasvir, 0, 1)
    return tasvir.permute(1, 2, 0).numpy()


# %%
def show_patches(image, patch_size, mean, std):
    tasvir = be_halat_avval(image, mean, std)
    tedad_satr = tasvir.shape[0] // patch_size
    tedad_sotoon = tasvir.shape[1] // patch_size

    # شکل اصلی سمت چپ، تکه‌ها سمت راست؛ هر تکه یک subplot
    plt.figure(figsize=(2 * 4, 4))
    plt.subplot(1, 2, 1)
    plt.imshow(tasvir)
    plt.title("tasvir asli (image)")
    plt.axis("off")

    satr = 0
    while satr < tedad_satr:
        sotoon = 0
        while sotoon < tedad_sotoon:
            y = satr * patch_size
            x = sotoon * patch_size
            tekke = tasvir[y : y + patch_size, x : x + patch_size]
            # شبکه‌ای با دو برابر ستون؛ نیمه‌ی راست برای تکه‌ها
            shomare = satr * (2 * tedad_sotoon) + tedad_sotoon + sotoon + 1
            plt.subplot(tedad_satr, 2 * tedad_sotoon, shomare)
            plt.imshow(tekke)
            plt.axis("off")
            sotoon = sotoon + 1
        satr = satr + 1
    plt.show()


# %%
def show_attention(model, image, mean, std):
    _, block_ha, _ = parts(model)
    tavajoh = block_ha[-1].attn

    # قدم ۱: حالت هر ماژول را یادداشت می‌کنیم تا بعد برگردانیم
    halat_ha = {}
    for nam, module in model.named_modules():
        halat_ha[nam] = module.training

    # قدم ۲: ورودی لایه‌ی توجه آخر را با hook می‌گیریم
    gerefte = {}

    def ghollab(module, voroodi):
        gerefte["x"] = voroodi[0].detach()

    dastgire = tavajoh.register_forward_pre_hook(ghollab)
    model.eval()
    with torch.no_grad():
        dastgah = next(model.parameters()).device
        model(image.unsqueeze(0).to(dastgah))
        dastgire.remove()

        # قدم ۳: q و k
        x = gerefte["x"]
        tedad_token = x.shape[1]
        bod = x.shape[2]
        tedad_sar = tavajoh.num_heads
        bod_sar = bod // tedad_sar
        qkv = tavajoh.qkv(x)[0]  # (token, 3 * bod)
        q = qkv[:, 0:bod]
        k = qkv[:, bod : 2 * bod]

        # قدم ۴: برای هر سر جداگانه، توجه توکن کلاس به همه‌ی توکن‌ها
        majmoo = torch.zeros(tedad_token, device=x.device)
        sar = 0
        while sar < tedad_sar:
            q_sar = q[:, sar * bod_sar : (sar + 1) * bod_sar]
            k_sar = k[:, sar * bod_sar : (sar + 1) * bod_sar]
            emtiaz = torch.matmul(q_sar, k_sar.T) / math.sqrt(bod_sar)
            vazn = torch.softmax(emtiaz, dim=-1)
            majmoo = majmoo + vazn[0]
            sar = sar + 1
        miangin = majmoo / tedad_sar

    # قدم ۵: حالت‌ها سر جای خود
    for nam, module in model.named_modules():
        module.training = halat_ha[nam]

    # قدم ۶: توکن صفرم خود کلاس است؛ بقیه تکه‌ها هستند
    tedad_tekke = tedad_token - 1
    zel = int(round(math.sqrt(tedad_tekke)))
    naghshe = miangin[1:].reshape(zel, zel).cpu().numpy()

    plt.figure(figsize=(8, 4))
    plt.subplot(121)
    plt.imshow(be_halat_avval(image, mean, std))
    plt.title("tasvir (image)")
    plt.axis("off")
    plt.subplot(122)
    plt.imshow(naghshe, cmap="hot")
    plt.title("tavajoh token class (attention)")
    plt.colorbar()
    plt.axis("off")
    plt.show()


# %%
def plot_history(history):
    tedad_epoch = len(history["khata_amoozesh"])
    epoch_ha = list(range(1, tedad_epoch + 1))
    shoroo = history["shoroo_marhale_2"]

    shekl, mehvar_ha = plt.subplots(1, 2, figsize=(13, 5))

    mehvar = mehvar_ha[0]
    mehvar.plot(epoch_ha, history["khata_amoozesh"], "b-o", label="train loss")
    mehvar.plot(epoch_ha, history["khata_etebarsanji"], "r-o", label="validation loss")
    mehvar.set_title("Loss")
    mehvar.set_ylabel("loss")

    mehvar = mehvar_ha[1]
    mehvar.plot(epoch_ha, history["deghat_amoozesh"], "b-o", label="train accuracy")
    mehvar.plot(epoch_ha, history["deghat_etebarsanji"], "r-o", label="validation accuracy")
    mehvar.set_title("Accuracy")
    mehvar.set_ylabel("accuracy")

    for mehvar in mehvar_ha:
        mehvar.set_xlabel("epoch")
        for x in shoroo:
            mehvar.axvline(x=x, color="green", linestyle="--", label="start of stage 2")
        mehvar.legend()
        mehvar.grid(True)
    plt.show()


# %%
def plot_per_class(names, accuracies):
    plt.figure(figsize=(10, 5))
    i = 0
    while i < len(names):
        deghat = float(accuracies[i])
        if not math.isnan(deghat):
            plt.bar(i, deghat, color="teal")
            plt.text(i, deghat + 0.01, f"{deghat * 100:.1f}%", ha="center")
        i = i + 1
    plt.xticks(range(len(names)), names, rotation=45)
    plt.xlim(-0.6, len(names) - 0.4)
    plt.ylim(0, 1.08)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.title("deghat har class")
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    matris = np.array(matrix)
    tedad_class = len(class_names)
    bishtarin = matris.max()

    plt.figure(figsize=(9, 8))
    plt.imshow(matris, cmap="Greens")
    plt.colorbar()
    satr = 0
    while satr < tedad_class:
        sotoon = 0
        while sotoon < tedad_class:
            meghdar = int(matris[satr, sotoon])
            rang = "black"
            if meghdar > bishtarin / 2:
                rang = "white"
            # x ستون است و y سطر
            plt.text(sotoon, satr, str(meghdar), ha="center", va="center", color=rang)
            sotoon = sotoon + 1
        satr = satr + 1
    plt.xticks(range(tedad_class), class_names, rotation=60)
    plt.yticks(range(tedad_class), class_names)
    plt.xlabel("predicted (hads)")
    plt.ylabel("true (haghighi)")
    plt.title("confusion matrix")
    plt.tight_layout()
    plt.show()


# %% [markdown]
# ## خواندن تصویرها
# داده‌ی آزمون فقط یک بار، آخر کار، دیده می‌شود. روی اعتبارسنجی هیچ افزایشی (augmentation) نداریم.

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

tabdil_sade = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
tabdil_amoozesh = transforms.Compose(
    [
        transforms.RandomHorizontalFlip(),
        transforms.RandomCrop(32, padding=4),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
tasavir_afzoode = datasets.ImageFolder("data/train", transform=tabdil_amoozesh)
tasavir_sade = datasets.ImageFolder("data/train", transform=tabdil_sade)
tasavir_azmoon = datasets.ImageFolder("data/test", transform=tabdil_sade)
class_names = tasavir_azmoon.classes

kamtarin = int(np.bincount(tasavir_sade.targets).min())
tedad_etebarsanji = kamtarin // 5
tedad_amoozesh = kamtarin - tedad_etebarsanji
andis_amoozesh, andis_etebarsanji = stratified_split(
    tasavir_sade.targets, (tedad_amoozesh, tedad_etebarsanji), seed=42
)
loaders = {}
loaders["train"] = DataLoader(Subset(tasavir_afzoode, andis_amoozesh), batch_size=BATCH_SIZE, shuffle=True)
loaders["validation"] = DataLoader(Subset(tasavir_sade, andis_etebarsanji), batch_size=256)
test_loader = DataLoader(tasavir_azmoon, batch_size=256)

# %% [markdown]
# ## آموزش

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## نتیجه

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"khata {loss:.4f}, deghat {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matris = np.zeros((len(class_names), len(class_names)), dtype=int)
for haghighi, hads in zip(targets, predictions):
    matris[haghighi, hads] += 1
plot_confusion_matrix(matris, class_names)

# %%
tasavir, barchasb_ha = next(iter(test_loader))
show_patches(tasavir[0], 4, MEAN, STD)
show_attention(model, tasavir[0], MEAN, STD)
