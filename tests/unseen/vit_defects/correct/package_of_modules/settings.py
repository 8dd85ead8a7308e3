"""All numbers in one place."""

STUDENT_ID = "99213460"
SEED = 42

ARCHIVE = "dataset.zip"
UNPACKED = "dataset"
SPLIT = "data"
TRAIN_SHARE = 0.7

IMAGE_SIZE = 28
MEAN, STD = 0.5, 0.5
BATCH_SIZE = 64

ARCHITECTURE = dict(
    image_size=IMAGE_SIZE,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=6,
    heads=8,
    mlp_dim=160,
    dim_head=16,
    pool="cls",
    dropout=0.1,
    emb_dropout=0.0,
)

N_EPOCHS = 40
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.03
WARMUP_EPOCHS = 3
CLIP_NORM = 1.0

PRINT_EVERY = 100
