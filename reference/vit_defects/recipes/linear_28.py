"""28 x 28 images and a linear patch projection, tuned: crops of the originals, mean pooling, more epochs.

Most of the gain is in the training images. They are read at full size; `augment` cuts a square out of each at
random before it makes it small, so that the same photograph gives ever new pixels at 28 x 28. Test images are
made small as in the handout. They stay as they lie: on images kept out of training, no recipe gains by flips
and transposition.

A remark `# without WHAT: VALUE` behind a number says what takes an ingredient out;
`python -m benchmarks ingredients` measures it.
"""

IMAGE_SIZE = 28
PATCH_SIZE = 4
transform = transforms.Compose(
    [
        transforms.Resize((IMAGE_SIZE, IMAGE_SIZE)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
full_size = transforms.Compose(
    [
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 64
train_set = datasets.ImageFolder("data/train", transform=full_size)

EMBEDDING_NORM = nn.LayerNorm  # without normalizations around the patch projection: nn.Identity


class Embedding(nn.Module):
    """Images to tokens by a linear projection of the patches, normalized before it and after it.

    Args:
        channels: How many channels the image has.
        patch_size: Height and width of a patch.
        dim: The width of a token.

    forward:
        img: Images, (batch, channels, height, width).
        Returns tokens, (batch, height / patch_size * width / patch_size, dim).
    """

    def __init__(self, channels, patch_size, dim):
        super().__init__()
        patch_dim = channels * patch_size**2
        self.projection = nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=patch_size, q=patch_size),
            EMBEDDING_NORM(patch_dim),
            nn.Linear(patch_dim, dim),
            EMBEDDING_NORM(dim),
        )

    def forward(self, img):
        return self.projection(img)


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
        num_patches = (image_size // patch_size) ** 2
        self.pool = pool
        self.embedding = Embedding(channels, patch_size, dim)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.positions = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, self.embedding(img)], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        pooled = encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1)
        return self.head(pooled)


LEAST_CROP = 0.7  # without crops of different sizes and places: 1.0
TURNED = False  # without images as they lie (flipped and transposed instead): True
BRIGHTNESS = 0.1  # without changes of brightness: 0.0
LABEL_SMOOTHING = 0.1  # without label smoothing: 0.0


def cropped(images):
    """A square at a random place of each image, as small as the model's images.

    Args:
        images: (batch, channels, height, width). Those that are no larger than the model's stay as they are.

    Returns:
        (batch, channels, IMAGE_SIZE, IMAGE_SIZE).
    """
    height, width = images.shape[-2:]
    if min(height, width) <= IMAGE_SIZE:
        return images
    share = LEAST_CROP + (1 - LEAST_CROP) * torch.rand(()).item()
    side = round(share * min(height, width))
    tops = torch.randint(0, height - side + 1, (len(images),)).tolist()
    lefts = torch.randint(0, width - side + 1, (len(images),)).tolist()
    squares = [
        image[:, top : top + side, left : left + side]
        for image, top, left in zip(images, tops, lefts, strict=True)
    ]
    return F.interpolate(torch.stack(squares), (IMAGE_SIZE, IMAGE_SIZE), mode="bilinear", antialias=True)


def augment(images):
    """Varies each image of a batch at random: a crop, flips, transposition, brightness.

    Args:
        images: (batch, channels, height, width), with height equal to width.

    Returns:
        New images, (batch, channels, IMAGE_SIZE, IMAGE_SIZE), or of their own size where that is smaller.
    """
    images = cropped(images)
    n, _, height, width = images.shape

    def half():
        return torch.rand(n, 1, 1, 1, device=images.device) < 0.5

    if TURNED:
        images = torch.where(half(), images.flip(-1), images)
        images = torch.where(half(), images.flip(-2), images)
        if height == width:
            images = torch.where(half(), images.transpose(-2, -1), images)
    return images + BRIGHTNESS * torch.randn(n, 1, 1, 1, device=images.device)


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    total = len(data_loader.dataset)
    for index, (images, labels) in enumerate(data_loader):
        images, labels = augment(images.to(device)), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"[{index * len(images):5d}/{total}] loss {loss.item():.4f}")
            loss_history.append(loss.item())


POOL = "mean"  # without mean pooling (the class token instead): "cls"
DEPTH = 6
DIM_HEAD = 16
model = ViT(
    image_size=IMAGE_SIZE,
    patch_size=PATCH_SIZE,
    num_classes=6,
    channels=1,
    dim=64,
    depth=DEPTH,
    heads=4,
    dim_head=DIM_HEAD,
    mlp_dim=128,
    pool=POOL,
)

N_EPOCHS = 80
LEARNING_RATE = 2e-3  # without the higher learning rate (1e-3 instead): 1e-3
WARMUP_EPOCHS = 5  # without warm-up: 0
WEIGHT_DECAY = 0.05  # without weight decay: 0.0
optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)

for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    scheduler.step()
    if epoch % 10 == 0:  # a look at the test images every epoch would take a quarter of the time
        evaluate(model, test_loader, test_loss_history)
