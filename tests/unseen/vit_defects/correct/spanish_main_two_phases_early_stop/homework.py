# Laboratorio 8 - Vision Transformer para defectos de superficie en acero
# (los nombres de clases y funciones son los del enunciado; lo demás está en español)
import argparse
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400107001"
dispositivo = torch.device("cuda" if torch.cuda.is_available() else "cpu")
criterio = nn.CrossEntropyLoss()


def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
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


class PreNorm(nn.Module):
    """Normaliza y después aplica fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.normalizacion = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        normalizado = self.normalizacion(x)
        return self.fn(normalizado, **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        capas = [nn.Linear(dim, hidden_dim), nn.ReLU(), nn.Dropout(dropout)]
        capas += [nn.Linear(hidden_dim, dim), nn.Dropout(dropout)]
        self.capas = nn.Sequential(*capas)

    def forward(self, x):
        return self.capas(x)


class Cabeza(nn.Module):
    """Una sola cabeza de atención, con sus propias proyecciones."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self.consulta = nn.Linear(dim, dim_head)
        self.clave = nn.Linear(dim, dim_head)
        self.valor = nn.Linear(dim, dim_head)
        self.raiz = dim_head ** 0.5

    def forward(self, x):
        puntos = torch.bmm(self.consulta(x), self.clave(x).transpose(1, 2)) / self.raiz
        return torch.bmm(torch.softmax(puntos, dim=-1), self.valor(x))


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.cabezas = nn.ModuleList(Cabeza(dim, dim_head) for _ in range(heads))
        self.salida = nn.Linear(heads * dim_head, dim)
        self.abandono = nn.Dropout(dropout)

    def forward(self, x):
        juntas = torch.cat([cabeza(x) for cabeza in self.cabezas], dim=-1)
        return self.abandono(self.salida(juntas))


class Bloque(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.atencion = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.densa = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))

    def forward(self, x):
        x = self.atencion(x) + x
        x = self.densa(x) + x
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.bloques = nn.Sequential(*(Bloque(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)))

    def forward(self, x):
        return self.bloques(x)


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
        lado = image_size // patch_size
        assert lado * patch_size == image_size, "el parche no divide la imagen"
        assert pool in {"cls", "mean"}
        self.pool = pool
        self.parches = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.testigo = nn.Parameter(torch.zeros(dim))
        self.posiciones = nn.Parameter(torch.empty(lado * lado + 1, dim))
        nn.init.trunc_normal_(self.posiciones, std=0.02)
        nn.init.trunc_normal_(self.testigo, std=0.02)
        self.abandono = nn.Dropout(emb_dropout)
        self.codificador = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norma_final = nn.LayerNorm(dim)
        self.clasificador = nn.Linear(dim, num_classes)

    def forward(self, img):
        trozos = self.parches(img).flatten(start_dim=2).permute(0, 2, 1)
        testigo = self.testigo.repeat(trozos.size(0), 1, 1)
        secuencia = torch.cat((testigo, trozos), dim=1) + self.posiciones
        secuencia = self.codificador(self.abandono(secuencia))
        resumen = secuencia.mean(dim=1) if self.pool == "mean" else secuencia[:, 0, :]
        return self.clasificador(self.norma_final(resumen))


def train_epoch(model, optimizer, data_loader, loss_history):
    """Una pasada por los datos."""
    model.train()
    cuantos = len(data_loader)
    for lote, (imagenes, etiquetas) in enumerate(data_loader):
        optimizer.zero_grad(set_to_none=True)
        perdida = criterio(model(imagenes.to(dispositivo)), etiquetas.to(dispositivo))
        perdida.backward()
        optimizer.step()
        if lote % 100 == 0:
            valor = float(perdida.detach())
            loss_history.append(valor)
            print(f"  lote {lote + 1} de {cuantos}: pérdida {valor:.4f}")


@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Pérdida media por imagen y exactitud, que además se devuelve."""
    model.eval()
    suma, aciertos, total = 0.0, 0, 0
    for imagenes, etiquetas in data_loader:
        imagenes, etiquetas = imagenes.to(dispositivo), etiquetas.to(dispositivo)
        puntuaciones = model(imagenes)
        suma += criterio(puntuaciones, etiquetas).item() * etiquetas.numel()
        aciertos += int(torch.sum(puntuaciones.argmax(dim=1) == etiquetas))
        total += etiquetas.numel()
    loss_history.append(suma / total)
    print(f"  pérdida media {suma / total:.4f}, aciertos {aciertos}/{total}, exactitud {100 * aciertos / total:.2f} %")
    return aciertos / total


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    verdad, dicho = [], []
    with torch.no_grad():
        for imagenes, etiquetas in data_loader:
            verdad += etiquetas.tolist()
            dicho += model(imagenes.to(dispositivo)).argmax(dim=1).tolist()
    matriz = confusion_matrix(verdad, dicho, labels=np.arange(len(class_names)))
    figura, eje = plt.subplots(figsize=(8, 7))
    mapa = eje.imshow(matriz, cmap="viridis")
    figura.colorbar(mapa)
    eje.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    eje.set_yticks(range(len(class_names)), class_names)
    mitad = matriz.max() / 2
    for (fila, columna), numero in np.ndenumerate(matriz):
        eje.text(columna, fila, str(numero), ha="center", va="center", color="black" if numero > mitad else "white")
    eje.set_xlabel("Predicted (clase predicha)")
    eje.set_ylabel("True (clase verdadera)")
    figura.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    elegidas = {clase: [] for clase in range(len(class_names))}
    with torch.no_grad():
        for imagenes, etiquetas in data_loader:
            predichas = model(imagenes.to(dispositivo)).argmax(dim=1).cpu()
            for imagen, etiqueta, predicha in zip(imagenes, etiquetas.tolist(), predichas.tolist()):
                if len(elegidas[etiqueta]) < samples_per_class:
                    elegidas[etiqueta].append((imagen, predicha))
    figura = plt.figure(figsize=(2.5 * samples_per_class, 2.6 * len(class_names)))
    for clase, muestras in elegidas.items():
        for columna, (imagen, predicha) in enumerate(muestras):
            eje = figura.add_subplot(len(class_names), samples_per_class, clase * samples_per_class + columna + 1)
            eje.imshow((imagen[0].cpu() * 0.5 + 0.5).clamp(0, 1), cmap="gray")
            eje.set_title(
                f"True: {class_names[clase]}\nPred: {class_names[predicha]}",
                color="tab:green" if clase == predicha else "tab:red",
                fontsize=8,
            )
            eje.axis("off")
    figura.tight_layout()
    plt.show()


def preparar_datos(tamano_lote, semilla):
    """Entrenamiento, validación (uno de cada ocho de entrenamiento) y prueba."""
    with zipfile.ZipFile("dataset.zip") as archivo:
        archivo.extractall("dataset")
    split_dataset(find_class_folders(Path("dataset")), Path("data"))
    fija = [transforms.Resize((28, 28)), transforms.Grayscale(num_output_channels=1), transforms.ToTensor(),
            transforms.Normalize((0.5,), (0.5,))]
    azar = [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), transforms.RandomCrop(28, padding=2,
            padding_mode="reflect")]
    variadas = datasets.ImageFolder("data/train", transform=transforms.Compose(fija[:2] + azar + fija[2:]))
    fijas = datasets.ImageFolder("data/train", transform=transforms.Compose(fija))
    prueba = datasets.ImageFolder("data/test", transform=transforms.Compose(fija))
    orden = np.random.default_rng(semilla).permutation(len(fijas))
    corte = len(orden) // 8
    return (
        DataLoader(Subset(variadas, orden[corte:].tolist()), batch_size=tamano_lote, shuffle=True),
        DataLoader(Subset(fijas, orden[:corte].tolist()), batch_size=256),
        DataLoader(prueba, batch_size=256),
        fijas.classes,
    )


def calentar(modelo, cargador, epocas, historia):
    """Fase 1: SGD con una tasa pequeña, para que los pesos se asienten."""
    optimizador = optim.SGD(modelo.parameters(), lr=0.02, momentum=0.9)
    for epoca in range(epocas):
        print(f"Calentamiento {epoca + 1}/{epocas}")
        train_epoch(modelo, optimizador, cargador, historia)


def afinar(modelo, cargador, validacion, opciones, historia, historia_validacion):
    """Fase 2: AdamW; termina cuando la validación no mejora; el mejor modelo queda en un archivo."""
    mejor_archivo = Path("mejor_modelo.pt")
    optimizador = optim.AdamW(modelo.parameters(), lr=opciones.tasa, weight_decay=0.05)
    plan = optim.lr_scheduler.CosineAnnealingLR(optimizador, T_max=opciones.epocas, eta_min=1e-6)
    mejor, espera, epoca = -1.0, 0, 0
    while espera < opciones.paciencia and epoca < opciones.epocas:
        epoca += 1
        print(f"Época {epoca}")
        train_epoch(modelo, optimizador, cargador, historia)
        plan.step()
        exactitud = evaluate(modelo, validacion, historia_validacion)
        if exactitud > mejor:
            mejor, espera = exactitud, 0
            torch.save(modelo.state_dict(), mejor_archivo)
        else:
            espera += 1
    modelo.load_state_dict(torch.load(mejor_archivo, map_location=dispositivo, weights_only=True))
    print(f"Mejor exactitud de validación: {mejor:.4f}")


def leer_opciones():
    lector = argparse.ArgumentParser(description="ViT para defectos de acero")
    lector.add_argument("--epocas", type=int, default=80)
    lector.add_argument("--calentamiento", type=int, default=4)
    lector.add_argument("--paciencia", type=int, default=20)
    lector.add_argument("--tasa", type=float, default=7e-4)
    lector.add_argument("--lote", type=int, default=48)
    lector.add_argument("--semilla", type=int, default=42)
    return lector.parse_args()


def main():
    opciones = leer_opciones()
    torch.manual_seed(opciones.semilla)
    entrenamiento, validacion, prueba, clases = preparar_datos(opciones.lote, opciones.semilla)
    modelo = ViT(image_size=28, patch_size=4, num_classes=len(clases), channels=1, dim=96, depth=5, heads=4,
                 mlp_dim=192, dim_head=24, dropout=0.1, emb_dropout=0.05).to(dispositivo)
    print(modelo)
    print("Parámetros:", sum(p.numel() for p in modelo.parameters() if p.requires_grad))

    historia, historia_validacion = [], []
    inicio = time.time()
    calentar(modelo, entrenamiento, opciones.calentamiento, historia)
    afinar(modelo, entrenamiento, validacion, opciones, historia, historia_validacion)
    print(f"Entrenado en {time.time() - inicio:.0f} s. Prueba:")
    evaluate(modelo, prueba, [])
    torch.save(modelo.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")

    plt.figure()
    plt.plot(historia, label="entrenamiento")
    plt.plot(historia_validacion, label="validación")
    plt.xlabel("época")
    plt.ylabel("entropía cruzada")
    plt.legend()
    plt.show()
    plot_confusion_matrix(modelo, prueba, clases)
    plot_classwise_predictions(modelo, prueba, clases)


if __name__ == "__main__":
    main()
