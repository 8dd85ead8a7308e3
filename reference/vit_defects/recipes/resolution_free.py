"""Larger images: 128 x 128 pixels, of which the stem makes 8 x 8 tokens.

The defects are textures whose grain is lost at 28 x 28: what no training recovers, more pixels bring back.

Based on: conv_stem_28
Policy: convolutional_stem
"""

IMAGE_SIZE = 128
PATCH_SIZE = 16
LEAST_CROP = 0.85  # without crops of different sizes and places: 1.0
N_EPOCHS = 75
