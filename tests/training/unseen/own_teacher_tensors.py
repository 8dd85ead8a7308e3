"""All images are put in two tensors once (batches by randperm, no DataLoader in training); a wide teacher is trained first and distilled into the small model.

Epochs: 5
Rates: 0.01 0.00905 0.00658 0.00352 0.00105
Optimizers: AdamW
Parameters: 1636
Others: 1
Weights: last
"""
import time

torch.manual_seed(3)

tf = transforms.Compose([transforms.Grayscale(1), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
train_set = datasets.ImageFolder("data/train", transform=tf)
test_set = datasets.ImageFolder("data/test", transform=tf)
test_loader = DataLoader(test_set, batch_size=4)


def to_tensors(dataset):
    images, labels = zip(*dataset)
    return torch.stack(images), torch.tensor(labels)


# reading the files again in every epoch was the slowest part, so keep everything in memory
X, Y = to_tensors(train_set)
X_test, Y_test = to_tensors(test_set)
print("training data:", tuple(X.shape), "test data:", tuple(X_test.shape))

batch_size = 4


def batches():
    for idx in torch.randperm(len(X)).split(batch_size):
        yield X[idx], Y[idx]


@torch.no_grad()
def accuracy(net):
    net.eval()
    return (net(X_test).argmax(1) == Y_test).float().mean().item()


# ------------------------------------------------------------------ 1. teacher
teacher = ViT(image_size=8, patch_size=4, num_classes=3, dim=64, depth=4, heads=8, mlp_dim=128, channels=1)
teacher_optimizer = optim.AdamW(teacher.parameters(), lr=3e-3)
teacher_epochs = 4
for epoch in range(teacher_epochs):
    teacher.train()
    for x, y in batches():
        loss = F.cross_entropy(teacher(x), y)
        teacher_optimizer.zero_grad()
        loss.backward()
        teacher_optimizer.step()
    print(f"[teacher] epoch {epoch + 1}/{teacher_epochs} accuracy {accuracy(teacher):.3f}")

teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)

# ------------------------------------------------------------------ 2. student
T = 2.0        # temperature
alpha = 0.7    # weight of the teacher

model = ViT(image_size=8, patch_size=4, num_classes=3, dim=16, depth=2, heads=4, mlp_dim=32, channels=1)
optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
N_EPOCHS = 5
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=N_EPOCHS, eta_min=1e-4)


def distillation_loss(student_logits, teacher_logits, y):
    soft = F.kl_div(F.log_softmax(student_logits / T, 1), F.softmax(teacher_logits / T, 1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(student_logits, y)


train_losses, test_losses, accs = [], [], []
start = time.time()
for epoch in range(N_EPOCHS):
    model.train()
    running = 0.0
    for x, y in batches():
        with torch.no_grad():
            teacher_logits = teacher(x)
        loss = distillation_loss(model(x), teacher_logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(x)
    scheduler.step()
    train_losses.append(running / len(X))
    evaluate(model, test_loader, test_losses)
    accs.append(accuracy(model))
    print(f"[student] epoch {epoch + 1}/{N_EPOCHS} loss {train_losses[-1]:.4f} test {test_losses[-1]:.4f} accuracy {accs[-1]:.3f}")
print(f"{time.time() - start:.1f} s; teacher {accuracy(teacher):.3f}, student {accs[-1]:.3f}")

torch.save(teacher.state_dict(), "teacher.pth")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
