"""Patches by reshape and permute, normalizations around the projection, a single head layer, log_softmax.

The class token gets its position before it is put in front; training uses the matching loss.
"""


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
        self.p, self.c = patch_size, channels
        grid = image_size // patch_size
        patch_dim = channels * patch_size**2
        self.to_patch_embedding = nn.Sequential(
            nn.LayerNorm(patch_dim), nn.Linear(patch_dim, dim), nn.LayerNorm(dim)
        )
        self.pos_embedding = nn.Parameter(torch.randn(1, grid * grid, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        b, c, h, w = img.shape
        x = img.reshape(b, c, h // self.p, self.p, w // self.p, self.p)
        x = x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * self.p * self.p)
        x = self.to_patch_embedding(x) + self.pos_embedding
        x = torch.cat((self.cls_token.repeat(b, 1, 1), x), 1)
        x = self.transformer(self.dropout(x))
        x = x.mean(1) if self.pool == "mean" else x[:, 0, :]
        return F.log_softmax(self.classifier(x), dim=-1)


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (data, target) in enumerate(data_loader):
        optimizer.zero_grad()
        output = model(data.to(device))
        loss = F.nll_loss(output, target.to(device))
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print("[{}/{}]  Loss: {:.4f}".format(i * len(data), len(data_loader.dataset), loss.item()))
            loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    model.eval()
    total_samples = len(data_loader.dataset)
    correct_samples = 0
    total_loss = 0
    with torch.no_grad():
        for data, target in data_loader:
            output = model(data)
            total_loss += F.nll_loss(output, target, reduction="sum").item()
            _, pred = torch.max(output, dim=1)
            correct_samples += pred.eq(target).sum()
    avg_loss = total_loss / total_samples
    loss_history.append(avg_loss)
    print("\nAverage test loss: " + "{:.4f}".format(avg_loss))
    print(
        "Accuracy:"
        + "{:5}".format(correct_samples)
        + "/"
        + "{:5}".format(total_samples)
        + " ("
        + "{:4.2f}".format(100.0 * correct_samples / total_samples)
        + "%)\n"
    )
