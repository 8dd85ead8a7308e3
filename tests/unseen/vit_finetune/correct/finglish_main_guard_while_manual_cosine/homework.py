# Tamrin 3: fine-tuning yek ViT (motaghayer-ha be finglish)
import argparse
import logging
import math
import random
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
NERKH = 5e-3        # nerkh-e yadgiri-ye marhale 1
SABR = 4            # chand dore bedoon-e behbood
VAZN = 1e-2         # weight decay
NARMI = 0.05        # label smoothing
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
gozaresh = logging.getLogger("tamrin3")


def stratified_split(labels, per_class, seed):
    """Az har class tedad-e dorost baraye har bakhsh, bedoon-e eshterak."""
    sabad = {}
    for shomare, barchasb in enumerate(labels):
        sabad.setdefault(int(barchasb), []).append(shomare)
    tas = random.Random(seed)
    bakhshha = tuple([] for _ in per_class)
    for barchasb in sorted(sabad):
        indexha = sabad[barchasb]
        if len(indexha) < sum(per_class):
            raise ValueError(f"class {barchasb}: faghat {len(indexha)} tasvir darad")
        tas.shuffle(indexha)
        for bakhsh, tedad in zip(bakhshha, per_class):
            for _ in range(tedad):
                bakhsh.append(indexha.pop())
    return bakhshha


def mixup(images, labels, alpha, generator):
    tartib = generator.permutation(images.shape[0]).tolist()
    lam = generator.beta(alpha, alpha) if alpha != 0 else 1
    return torch.lerp(images[tartib], images, float(lam)), labels, labels[tartib], float(lam)


def cutmix(images, labels, alpha, generator):
    tartib = generator.permutation(images.shape[0]).tolist()
    lam = float(generator.beta(alpha, alpha)) if alpha != 0 else 1.0
    ertefa, arz = images.size(2), images.size(3)
    zel = (1.0 - lam) ** 0.5
    h, w = int(ertefa * zel), int(arz * zel)          # mostatil kamel dakhel-e tasvir ast
    y = int(generator.integers(0, ertefa - h + 1))
    x = int(generator.integers(0, arz - w + 1))
    naghab = torch.zeros(ertefa, arz, dtype=torch.bool, device=images.device)
    naghab[y : y + h, x : x + w] = True
    tarkib = torch.where(naghab, images[tartib], images)
    return tarkib, labels, labels[tartib], 1.0 - h * w / (ertefa * arz)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    zarar_a, zarar_b = criterion(logits, labels_a), criterion(logits, labels_b)
    return zarar_b + lam * (zarar_a - zarar_b)


def freeze_backbone(model):
    sar, _, _ = parts(model)
    motealegh = set(map(id, sar.parameters()))
    for p in model.parameters():
        p.requires_grad_(id(p) in motealegh)


def unfreeze(model, blocks=None):
    sar, bloc, norm = parts(model)
    if blocks is None:
        azad = {id(p) for p in model.parameters()}
    else:
        entekhab = [sar, norm] + (bloc[-blocks:] if blocks > 0 else [])
        azad = {id(p) for m in entekhab for p in m.parameters()}
    for p in model.parameters():
        p.requires_grad_(id(p) in azad)


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for bloc in parts(model)[1]:
        if all(not p.requires_grad for p in bloc.parameters()):
            bloc.eval()
    jam = np.zeros(3)
    for tasvir, barchasb in loader:
        tasvir, barchasb = tasvir.to(device), barchasb.to(device)
        if mix is not None:
            tasvir, a, b, lam = mix(tasvir, barchasb)
        else:
            a, b, lam = barchasb, barchasb, 1.0
        khorooji = model(tasvir)
        zarar = mixed_loss(criterion, khorooji, a, b, lam)
        optimizer.zero_grad()
        zarar.backward()
        optimizer.step()
        hads = khorooji.detach().argmax(dim=-1)
        dorost = lam * (hads == a).sum().item() + (1 - lam) * (hads == b).sum().item()
        jam += (zarar.item() * len(barchasb), dorost, len(barchasb))
    return jam[0] / jam[2], jam[1] / jam[2]


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    zarar, hadaf, hads = 0.0, [], []
    for tasvir, barchasb in loader:
        khorooji = model(tasvir.to(device))
        zarar += criterion(khorooji, barchasb.to(device)).item() * barchasb.numel()
        hadaf += barchasb.tolist()
        hads += khorooji.argmax(dim=-1).tolist()
    deghat = sum(h == t for h, t in zip(hads, hadaf)) / len(hadaf)
    return zarar / len(hadaf), deghat, hadaf, hads


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.sabr, self.hadde_aghal = patience, min_delta
        self.bishine, self.montazer, self.vaznha = -math.inf, 0, {}

    def step(self, value, model):
        if value > self.bishine + self.hadde_aghal:     # ba NaN hamishe False ast
            self.bishine = float(value)
            self.montazer = 0
            self.vaznha = {nam: v.detach().clone() for nam, v in model.state_dict().items()}
            return False
        self.montazer += 1
        return self.montazer >= self.sabr

    def restore(self, model):
        if self.vaznha:
            model.load_state_dict(self.vaznha)


def fit(model, loaders, epochs, device):
    model.to(device)
    tarikh = dict(zarar_amoozesh=[], deghat_amoozesh=[], zarar_sanjesh=[], deghat_sanjesh=[], dore_marhale_1=[0])
    narm, sakht = nn.CrossEntropyLoss(label_smoothing=NARMI), nn.CrossEntropyLoss()
    tas = np.random.default_rng(7)

    def yek_dore(behine, mix):
        amoozesh = train_one_epoch(model, loaders["train"], behine, narm, device, mix)
        sanjesh = evaluate(model, loaders["validation"], sakht, device)[:2]
        for nam, adad in zip(tarikh, amoozesh + sanjesh):
            tarikh[nam].append(adad)
        gozaresh.info("amoozesh %.4f %.4f, sanjesh %.4f %.4f", *amoozesh, *sanjesh)
        return sanjesh[1]

    # marhale 1: faghat sar
    freeze_backbone(model)
    behine = optim.Adam(parts(model)[0].parameters(), lr=NERKH)
    dore = 0
    while dore < epochs[0]:
        yek_dore(behine, None)
        dore += 1
    tarikh["dore_marhale_1"] = [dore]

    # marhale 2: hame, ba yek dahom-e nerkh va cosine
    unfreeze(model)
    behine = optim.AdamW(model.parameters(), lr=NERKH * 0.1, weight_decay=VAZN)
    ist = EarlyStopping(patience=SABR)
    tamam, dore = epochs[1] == 0, 0
    while not tamam:
        for grooh in behine.param_groups:       # cosine ba dast
            grooh["lr"] = NERKH * 0.1 * (1 + math.cos(math.pi * dore / epochs[1])) / 2
        deghat = yek_dore(behine, lambda tasvir, barchasb: mixup(tasvir, barchasb, 0.3, tas))
        dore += 1
        tamam = ist.step(deghat, model) or dore == epochs[1]
    ist.restore(model)
    return tarikh


def per_class_accuracy(targets, predictions, classes):
    hameh, dorost = np.zeros(classes), np.zeros(classes)
    for t, p in zip(targets, predictions):
        hameh[int(t)] += 1
        dorost[int(t)] += int(t) == int(p)
    return np.array([d / h if h else float("nan") for d, h in zip(dorost, hameh)])


def bargardan(image, mean, std):
    tasvir = image.detach().cpu().numpy().transpose(1, 2, 0)
    return np.clip(tasvir * np.asarray(std) + np.asarray(mean), 0, 1)


def show_patches(image, patch_size, mean, std):
    tasvir = bargardan(image, mean, std)
    satr, sotoon = tasvir.shape[0] // patch_size, tasvir.shape[1] // patch_size
    fig = plt.figure(figsize=(10, 5))
    mahvar = fig.add_axes([0.02, 0.1, 0.44, 0.8])
    mahvar.imshow(tasvir)
    mahvar.axis("off")
    for i in range(satr):
        for j in range(sotoon):
            tekke = tasvir[i * patch_size : (i + 1) * patch_size, j * patch_size : (j + 1) * patch_size]
            pahna, boland = 0.46 / sotoon, 0.8 / satr
            mahvar = fig.add_axes([0.52 + j * pahna, 0.9 - (i + 1) * boland, pahna * 0.9, boland * 0.9])
            mahvar.imshow(tekke)
            mahvar.set_xticks([])
            mahvar.set_yticks([])


def show_attention(model, image, mean, std):
    """Voroodi-ye akharin bloc ba hook gerefte mishavad, va tavajjoh dobare hesab mishavad."""
    akhar = parts(model)[1][-1]
    voroodi = []
    ghollab = akhar.register_forward_pre_hook(lambda m, args: voroodi.append(args[0]))
    halat = model.training
    halat_blocha = [b.training for b in parts(model)[1]]
    model.eval()
    try:
        with torch.no_grad():
            model(image.unsqueeze(0).to(next(model.parameters()).device))
            qkv = akhar.attn.qkv(akhar.norm1(voroodi[0]))[0]
    finally:
        ghollab.remove()
        model.train(halat)
        for b, h in zip(parts(model)[1], halat_blocha):
            b.train(h)
    q, k, _ = qkv.chunk(3, dim=-1)
    naghsheha = []
    for qh, kh in zip(q.chunk(akhar.attn.num_heads, dim=-1), k.chunk(akhar.attn.num_heads, dim=-1)):
        naghsheha.append(F.softmax(qh @ kh.T / qh.shape[-1] ** 0.5, dim=-1)[0, 1:])
    miangin = torch.stack(naghsheha).mean(dim=0).cpu().numpy()
    zel = int(round(len(miangin) ** 0.5))
    naghshe = miangin.reshape(zel, zel)
    fig, (chap, rast) = plt.subplots(1, 2, figsize=(8, 4))
    chap.imshow(bargardan(image, mean, std))
    chap.set_title("image")
    rast.imshow(np.repeat(np.repeat(naghshe, image.shape[1] // zel, 0), image.shape[2] // zel, 1), cmap="hot")
    rast.set_title("class token, last block")
    chap.axis("off")
    rast.axis("off")


def plot_history(history):
    fig, (chap, rast) = plt.subplots(1, 2, figsize=(11, 4))
    doreha = np.arange(1, len(history["zarar_amoozesh"]) + 1)
    chap.plot(doreha, history["zarar_amoozesh"], label="training loss")
    chap.plot(doreha, history["zarar_sanjesh"], label="validation loss")
    rast.plot(doreha, history["deghat_amoozesh"], label="training accuracy")
    rast.plot(doreha, history["deghat_sanjesh"], label="validation accuracy")
    for mahvar, nam in ((chap, "loss"), (rast, "accuracy")):
        mahvar.axvline(history["dore_marhale_1"][0] + 0.5, color="k", ls=":", label="stage 2")
        mahvar.set_xlabel("epoch")
        mahvar.set_ylabel(nam)
        mahvar.legend()


def plot_per_class(names, accuracies):
    fig, mahvar = plt.subplots(figsize=(7, 5))
    mahvar.barh(range(len(names)), np.asarray(accuracies, dtype=float), color="teal")
    mahvar.set_yticks(range(len(names)), names)
    mahvar.set_xlim(0, 1)
    mahvar.set_xlabel("accuracy")
    mahvar.set_ylabel("class")
    fig.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    fig, mahvar = plt.subplots(figsize=(8, 8))
    mahvar.matshow(np.asarray(matrix), cmap="PuBu")
    for i, satr in enumerate(np.asarray(matrix)):
        for j, adad in enumerate(satr):
            mahvar.text(j, i, f"{int(adad)}", ha="center", va="center")
    mahvar.set_xticks(range(len(class_names)), class_names, rotation=60)
    mahvar.set_yticks(range(len(class_names)), class_names)
    mahvar.set_xlabel("predicted")
    mahvar.set_ylabel("true")


def dadeha(andaze):
    with zipfile.ZipFile("dataset.zip") as zip_file:
        zip_file.extractall("data")
    sade = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    motanave = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=3), sade])
    tasvir_amoozesh = datasets.ImageFolder("data/train", motanave)
    tasvir_sade = datasets.ImageFolder("data/train", sade)
    tasvir_test = datasets.ImageFolder("data/test", sade)
    kamtarin = int(np.bincount(tasvir_sade.targets).min())
    yek_panjom = kamtarin // 5
    amoozesh, sanjesh = stratified_split(tasvir_sade.targets, (kamtarin - yek_panjom, yek_panjom), seed=42)
    assert set(amoozesh).isdisjoint(sanjesh)
    loaders = {
        "train": DataLoader(Subset(tasvir_amoozesh, amoozesh), batch_size=andaze, shuffle=True),
        "validation": DataLoader(Subset(tasvir_sade, sanjesh), batch_size=256),
    }
    return loaders, DataLoader(tasvir_test, batch_size=256), tasvir_test.classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dore", type=int, nargs=2, default=(3, 12), metavar=("SAR", "HAME"))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, handlers=[logging.FileHandler("tamrin3.log", "w"), logging.StreamHandler()])
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loaders, test_loader, class_names = dadeha(args.batch)

    model = build_model(len(class_names))
    tarikh = fit(model, loaders, tuple(args.dore), device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
    plot_history(tarikh)

    zarar, deghat, hadaf, hads = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
    gozaresh.info("test: zarar %.4f, deghat %.4f", zarar, deghat)
    plot_per_class(class_names, per_class_accuracy(hadaf, hads, len(class_names)))
    matrix = np.zeros((len(class_names),) * 2, dtype=int)
    np.add.at(matrix, (hadaf, hads), 1)
    plot_confusion_matrix(matrix, class_names)
    tasvir = next(iter(test_loader))[0][0]
    show_patches(tasvir, 4, MEAN, STD)
    show_attention(model, tasvir, MEAN, STD)
    plt.show()


if __name__ == "__main__":
    main()
