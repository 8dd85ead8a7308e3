"""`results.json` and `scores.csv`: their contract and how they are written."""
