"""Which side of a split names and paths show."""

import pytest

from grader.domain.split_sides import split_side


@pytest.mark.parametrize(
    "text",
    [
        *("train_loader", "trainloader", "TrainLoader", "trnDl", "tr_dl", "X_train", "fit_batches"),
        *("data/train", "/home/dev/lab8/data/train", "/data/test_bench/train/", "root + '/train'"),
        *("'C:\\\\dev\\\\train'", "retraining", "train_val_split", "ImageFolder('data/train', test_tf)"),
    ],
)
def test_training(text: str) -> None:
    assert split_side(text) == "train"


@pytest.mark.parametrize(
    "text",
    [
        *("test_loader", "testset", "xtest", "XTest", "tst_dl", "val", "valid_ds", "valloader", "val_split"),
        *("ValidationData", "eval_batches", "dev_set", "devloader", "holdout", "va_dl", "te", "data/val"),
        *("/home/trainer/data/test", "Path(train_root) / 'val'", "validate_loader"),
    ],
)
def test_test(text: str) -> None:
    assert split_side(text) == "test"


@pytest.mark.parametrize(
    "text",
    [
        *("latest", "loader", "device", "developer", "values", "vals", "interval", "retrieval", "fastest"),
        *("constraints", "restrain", "contest", "data", "", "batch_size=64", "valentin"),
    ],
)
def test_none(text: str) -> None:
    assert split_side(text) is None
