# coding=utf-8
"""PyTorch ViT model for steel defects.

I have used the Hugging Face libraries for years, so the model is organized the way I know it from there: a config,
embeddings, encoder layers with separate query/key/value, outputs as dataclasses. Nothing is imported from that
library; every module is written here with nn.Linear, nn.Conv2d, nn.LayerNorm, nn.Dropout and nn.Embedding.
"""
import json
import math
import random
import shutil
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional, Tuple

import matplotlib.pyplot as plt
import seaborn as sns
import torch
from sklearn.metrics import classification_report, confusion_matrix
from torch import nn, optim
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400107725"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def set_seed(seed: int):
    random.seed(seed)
    torch.manual_seed(seed)


set_seed(42)


# ---------------------------------------------------------------------------------------------------------
# Arguments
# ---------------------------------------------------------------------------------------------------------


@dataclass
class DataArguments:
    archive: str = "dataset.zip"
    unpack_to: str = "dataset"
    split_to: str = "data"
    train_share: float = 0.7
    split_seed: int = 42


@dataclass
class TrainingArguments:
    per_device_batch_size: int = 64
    num_train_epochs: int = 40
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup_epochs: int = 3


data_args = DataArguments()
training_args = TrainingArguments()


# ---------------------------------------------------------------------------------------------------------
# Data
# ---------------------------------------------------------------------------------------------------------


def find_class_folders(root):
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
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


with zipfile.ZipFile(data_args.archive) as archive:
    archive.extractall(data_args.unpack_to)
split_dataset(
    find_class_folders(Path(data_args.unpack_to)),
    Path(data_args.split_to),
    train_share=data_args.train_share,
    seed=data_args.split_seed,
)

transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), *transform.transforms]
)

BATCH_SIZE = training_args.per_device_batch_size
train_set = datasets.ImageFolder(f"{data_args.split_to}/train", transform=train_transform)
test_set = datasets.ImageFolder(f"{data_args.split_to}/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE)
class_names = train_set.classes
id2label = dict(enumerate(class_names))
label2id = {name: index for index, name in id2label.items()}
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


def show_samples(dataset, title, per_class=6):
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9), squeeze=False)
    for label, row in enumerate(axes):
        indices = [index for index, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax in row:
            ax.axis("off")
        for ax, index in zip(row, indices):
            pixel_values, _ = dataset[index]
            ax.imshow(pixel_values.squeeze(0), cmap="gray", vmin=-1, vmax=1)
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")


# ---------------------------------------------------------------------------------------------------------
# Configuration and outputs
# ---------------------------------------------------------------------------------------------------------


@dataclass
class SteelViTConfig:
    hidden_size: int = 64
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    attention_head_size: int = 64
    intermediate_size: int = 128
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    embeddings_dropout_prob: float = 0.0
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-6
    image_size: int = 28
    patch_size: int = 4
    num_channels: int = 1
    num_labels: int = 6
    qkv_bias: bool = True
    pooling: str = "cls"

    def __post_init__(self):
        if self.image_size % self.patch_size != 0:
            raise ValueError(f"image_size {self.image_size} is not a multiple of patch_size {self.patch_size}.")
        if self.pooling not in ("cls", "mean"):
            raise ValueError(f"pooling must be 'cls' or 'mean', not {self.pooling!r}.")

    @property
    def num_patches(self):
        return (self.image_size // self.patch_size) ** 2

    def to_json_string(self):
        return json.dumps(asdict(self), indent=2, sort_keys=True)


@dataclass
class SelfAttentionOutput:
    context: torch.Tensor
    attention_probs: Optional[torch.Tensor] = None


@dataclass
class BaseModelOutput:
    last_hidden_state: torch.Tensor
    pooler_output: Optional[torch.Tensor] = None


@dataclass
class ImageClassifierOutput:
    logits: torch.Tensor
    hidden_states: Optional[torch.Tensor] = None


ACT2FN = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}


# ---------------------------------------------------------------------------------------------------------
# Modeling
# ---------------------------------------------------------------------------------------------------------


class ViTPatchEmbeddings(nn.Module):
    """pixel_values (batch, channels, height, width) -> (batch, num_patches, hidden_size)"""

    def __init__(self, config: SteelViTConfig):
        super().__init__()
        self.projection = nn.Conv2d(
            config.num_channels, config.hidden_size, kernel_size=config.patch_size, stride=config.patch_size
        )

    def forward(self, pixel_values):
        return self.projection(pixel_values).flatten(2).transpose(1, 2)


class ViTEmbeddings(nn.Module):
    """The class token, the patch embeddings and the (learned) position embeddings."""

    def __init__(self, config: SteelViTConfig):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.hidden_size))
        self.patch_embeddings = ViTPatchEmbeddings(config)
        self.position_embeddings = nn.Embedding(config.num_patches + 1, config.hidden_size)
        self.register_buffer("position_ids", torch.arange(config.num_patches + 1).unsqueeze(0), persistent=False)
        self.dropout = nn.Dropout(config.embeddings_dropout_prob)

    def forward(self, pixel_values):
        batch_size = pixel_values.shape[0]
        embeddings = self.patch_embeddings(pixel_values)
        cls_tokens = self.cls_token.expand(batch_size, -1, -1)
        embeddings = torch.cat((cls_tokens, embeddings), dim=1)
        embeddings = embeddings + self.position_embeddings(self.position_ids)
        return self.dropout(embeddings)


class ViTSelfAttention(nn.Module):
    def __init__(self, dim, heads, dim_head, qkv_bias=True):
        super().__init__()
        self.num_attention_heads = heads
        self.attention_head_size = dim_head
        self.all_head_size = heads * dim_head
        self.query = nn.Linear(dim, self.all_head_size, bias=qkv_bias)
        self.key = nn.Linear(dim, self.all_head_size, bias=qkv_bias)
        self.value = nn.Linear(dim, self.all_head_size, bias=qkv_bias)

    def transpose_for_scores(self, x):
        new_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        return x.view(new_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states) -> SelfAttentionOutput:
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))

        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        attention_probs = nn.functional.softmax(attention_scores, dim=-1)

        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        context_layer = context_layer.view(context_layer.size()[:-2] + (self.all_head_size,))
        return SelfAttentionOutput(context=context_layer, attention_probs=attention_probs)


class ViTSelfOutput(nn.Module):
    """The residual connection is not here but in the layer, because the layer norm comes first."""

    def __init__(self, all_head_size, dim, dropout):
        super().__init__()
        self.dense = nn.Linear(all_head_size, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        return self.dropout(self.dense(hidden_states))


class Attention(nn.Module):
    """Multi-head self-attention: `attention` (query, key, value) and `output` (projection)."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.attention = ViTSelfAttention(dim, heads, dim_head)
        self.output = ViTSelfOutput(heads * dim_head, dim, dropout)

    def forward(self, x):
        return self.output(self.attention(x).context)


class ViTIntermediate(nn.Module):
    def __init__(self, dim, hidden_dim, dropout, hidden_act="gelu"):
        super().__init__()
        self.dense = nn.Linear(dim, hidden_dim)
        self.intermediate_act_fn = ACT2FN[hidden_act]()
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        return self.dropout(self.intermediate_act_fn(self.dense(hidden_states)))


class ViTOutput(nn.Module):
    def __init__(self, hidden_dim, dim, dropout):
        super().__init__()
        self.dense = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        return self.dropout(self.dense(hidden_states))


class FeedForward(nn.Module):
    """Intermediate and output, as in BERT, without BERT's residual and norm."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.intermediate = ViTIntermediate(dim, hidden_dim, dropout)
        self.output = ViTOutput(hidden_dim, dim, dropout)

    def forward(self, x):
        return self.output(self.intermediate(x))


class PreNorm(nn.Module):
    """layernorm_before / layernorm_after of the original, together with what follows it."""

    def __init__(self, dim, fn):
        super().__init__()
        self.layernorm = nn.LayerNorm(dim, eps=1e-6)
        self.fn = fn

    def forward(self, x, **kwargs):
        hidden_states = self.layernorm(x)
        return self.fn(hidden_states, **kwargs)


class ViTLayer(nn.Module):
    """One block of the encoder."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))

    def forward(self, hidden_states):
        attention_output = self.attention(hidden_states)
        hidden_states = attention_output + hidden_states  # first residual connection
        layer_output = self.mlp(hidden_states)
        return layer_output + hidden_states  # second residual connection


class Transformer(nn.Module):
    """ViTEncoder."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layer = nn.ModuleList([ViTLayer(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        hidden_states = x
        for layer_module in self.layer:
            hidden_states = layer_module(hidden_states)
        return hidden_states


class ViTPooler(nn.Module):
    def __init__(self, pooling):
        super().__init__()
        self.pooling = pooling

    def forward(self, hidden_states):
        if self.pooling == "mean":
            return hidden_states.mean(dim=1)
        return hidden_states[:, 0]


class ViTPreTrainedModel(nn.Module):
    """Handles the initialization of the weights."""

    config: SteelViTConfig

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, mean=0.0, std=self.config.initializer_range)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.LayerNorm):
            module.bias.data.zero_()
            module.weight.data.fill_(1.0)
        elif isinstance(module, nn.Embedding):
            nn.init.trunc_normal_(module.weight, mean=0.0, std=self.config.initializer_range)
        elif isinstance(module, ViTEmbeddings):
            nn.init.trunc_normal_(module.cls_token, mean=0.0, std=self.config.initializer_range)

    def post_init(self):
        self.apply(self._init_weights)

    def num_parameters(self, only_trainable=False):
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not only_trainable)


class ViT(ViTPreTrainedModel):
    """ViTForImageClassification. The arguments are the assignment's; inside they become a config."""

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
        self.config = config = SteelViTConfig(
            hidden_size=dim,
            num_hidden_layers=depth,
            num_attention_heads=heads,
            attention_head_size=dim_head,
            intermediate_size=mlp_dim,
            hidden_dropout_prob=dropout,
            embeddings_dropout_prob=emb_dropout,
            image_size=image_size,
            patch_size=patch_size,
            num_channels=channels,
            num_labels=num_classes,
            pooling=pool,
        )
        self.embeddings = ViTEmbeddings(config)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.pooler = ViTPooler(config.pooling)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def base_model(self, pixel_values) -> BaseModelOutput:
        embedding_output = self.embeddings(pixel_values)
        sequence_output = self.encoder(embedding_output)
        sequence_output = self.layernorm(sequence_output)
        return BaseModelOutput(last_hidden_state=sequence_output, pooler_output=self.pooler(sequence_output))

    def classify(self, pixel_values) -> ImageClassifierOutput:
        outputs = self.base_model(pixel_values)
        logits = self.classifier(outputs.pooler_output)
        return ImageClassifierOutput(logits=logits, hidden_states=outputs.last_hidden_state)

    def forward(self, img):
        return self.classify(img).logits


# ---------------------------------------------------------------------------------------------------------
# Training and evaluation
# ---------------------------------------------------------------------------------------------------------

loss_fct = nn.CrossEntropyLoss()
LOGGING_STEPS = 100


def _prepare_inputs(model, batch) -> Tuple[torch.Tensor, torch.Tensor]:
    pixel_values, labels = batch
    try:
        target = next(model.parameters()).device
    except StopIteration:
        target = torch.device("cpu")
    return pixel_values.to(target), labels.to(target)


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for step, batch in enumerate(data_loader):
        pixel_values, labels = _prepare_inputs(model, batch)
        optimizer.zero_grad()
        logits = model(pixel_values)
        loss = loss_fct(logits, labels)
        loss.backward()
        optimizer.step()
        if step % LOGGING_STEPS == 0:
            loss_history.append(loss.item())
            print({"step": step, "loss": round(loss.item(), 4), "lr": optimizer.param_groups[0]["lr"]})


@dataclass
class EvalPrediction:
    predictions: torch.Tensor  # logits
    label_ids: torch.Tensor


def compute_metrics(eval_pred: EvalPrediction):
    labels = eval_pred.predictions.argmax(dim=-1)
    correct = (labels == eval_pred.label_ids).sum().item()
    return {
        "eval_loss": loss_fct(eval_pred.predictions, eval_pred.label_ids).item(),
        "eval_correct": correct,
        "eval_samples": len(labels),
        "eval_accuracy": correct / len(labels),
    }


@torch.no_grad()
def prediction_loop(model, data_loader) -> EvalPrediction:
    model.eval()
    all_logits, all_labels = [], []
    for batch in data_loader:
        pixel_values, labels = _prepare_inputs(model, batch)
        all_logits.append(model(pixel_values))
        all_labels.append(labels)
    return EvalPrediction(predictions=torch.cat(all_logits), label_ids=torch.cat(all_labels))


def evaluate(model, data_loader, loss_history):
    # all logits are collected first, so the mean is over images and not over batches
    metrics = compute_metrics(prediction_loop(model, data_loader))
    loss_history.append(metrics["eval_loss"])
    print(
        f"***** eval *****  loss = {metrics['eval_loss']:.4f}  accuracy = {metrics['eval_accuracy']:.4f} "
        f"({metrics['eval_correct']}/{metrics['eval_samples']})"
    )
    return metrics


# ---------------------------------------------------------------------------------------------------------
# Run
# ---------------------------------------------------------------------------------------------------------

model = ViT(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128, dropout=0.1
)
model.to(device)
print(model.config.to_json_string())
print(f"The model has {model.num_parameters(only_trainable=True):,} parameters.")


def get_parameter_groups(model, weight_decay):
    """No decay for biases, norms, position embeddings and the class token."""
    no_decay = ("bias", "layernorm.weight", "position_embeddings.weight", "cls_token")
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for n, p in named if not n.endswith(no_decay)], "weight_decay": weight_decay},
        {"params": [p for n, p in named if n.endswith(no_decay)], "weight_decay": 0.0},
    ]


def get_linear_schedule_with_warmup(optimizer, num_warmup_epochs, num_training_epochs):
    def lr_lambda(current):
        if current < num_warmup_epochs:
            return (current + 1) / max(1, num_warmup_epochs)
        return max(0.02, (num_training_epochs - current) / max(1, num_training_epochs - num_warmup_epochs))

    return LambdaLR(optimizer, lr_lambda)


optimizer = optim.AdamW(get_parameter_groups(model, training_args.weight_decay), lr=training_args.learning_rate)
N_EPOCHS = training_args.num_train_epochs
lr_scheduler = get_linear_schedule_with_warmup(optimizer, training_args.warmup_epochs, N_EPOCHS)

print("***** Running training *****")
print(f"  Num examples = {len(train_set)}")
print(f"  Num epochs = {N_EPOCHS}")
print(f"  Batch size = {BATCH_SIZE}")

train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    lr_scheduler.step()
print(f"Training took {time.time() - start:.1f} s.")

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()


# ---------------------------------------------------------------------------------------------------------
# Plots
# ---------------------------------------------------------------------------------------------------------


def plot_confusion_matrix(model, data_loader, class_names):
    eval_pred = prediction_loop(model, data_loader)
    y_true = eval_pred.label_ids.cpu().numpy()
    y_pred = eval_pred.predictions.argmax(dim=-1).cpu().numpy()
    ids = list(range(len(class_names)))
    cm = confusion_matrix(y_true, y_pred, labels=ids)
    plt.figure(figsize=(8, 6.5))
    sns.heatmap(
        cm, annot=True, fmt="d", cmap="rocket_r", xticklabels=class_names, yticklabels=class_names, linewidths=0.5
    )
    plt.xlabel("Predicted label")
    plt.ylabel("True label")
    plt.title("Confusion matrix")
    plt.tight_layout()
    plt.show()
    print(classification_report(y_true, y_pred, labels=ids, target_names=list(class_names), zero_division=0))


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    gallery = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for batch in data_loader:
            pixel_values, labels = _prepare_inputs(model, batch)
            probs = model(pixel_values).softmax(dim=-1)
            scores, predicted = probs.max(dim=-1)
            for image, label, guess, score in zip(pixel_values, labels, predicted, scores):
                bucket = gallery[label.item()]
                if len(bucket) < samples_per_class:
                    bucket.append((image.cpu(), guess.item(), score.item()))

    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.4 * samples_per_class, 2.6 * len(class_names)),
        squeeze=False,
    )
    for label, bucket in gallery.items():
        for column in range(samples_per_class):
            ax = axes[label][column]
            ax.axis("off")
            if column >= len(bucket):
                continue
            image, guess, score = bucket[column]
            image = (image * 0.5 + 0.5).clamp(0, 1)
            ax.imshow(image.permute(1, 2, 0) if image.shape[0] == 3 else image[0], cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"label: {class_names[label]}\nprediction: {class_names[guess]} ({score:.0%})",
                fontsize=7,
                color="tab:green" if guess == label else "tab:red",
            )
    plt.tight_layout()
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
