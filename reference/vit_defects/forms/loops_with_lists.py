"""A summed loss for training; predictions collected in lists and judged by scikit-learn.

Policy: losses_kept_more_often
"""

import numpy as np
from sklearn.metrics import accuracy_score

loss_fn = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        images = images.to(device)
        labels = labels.to(device)
        outputs = model(images)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        loss_history += [loss.detach().cpu().numpy()]


def evaluate(model, data_loader, loss_history):
    model.eval()
    y_true, y_pred, total = [], [], 0.0
    with torch.inference_mode():
        for images, labels in data_loader:
            outputs = model(images.to(device))
            total += loss_fn(outputs, labels.to(device)).item() * images.size(0)
            y_pred.extend(outputs.softmax(dim=1).argmax(dim=1).cpu().numpy())
            y_true.extend(labels.numpy())
    total = total / len(y_true)
    loss_history.append(np.float64(total))
    acc = accuracy_score(y_true, y_pred)
    print("Test loss = %.3f" % total, "| accuracy = %.0f %%" % (100 * acc))
    return acc
