"""The public checks in a Jupyter kernel: `grader.check("ViT")`, and `%%check ViT` above a cell."""
