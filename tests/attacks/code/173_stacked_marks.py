"""Stacks hundreds of combining marks on a letter, so that they cover the lines above and below.

Stopped by: a letter has at most two marks, and of further ones there is the number
Outcome: its component fails
Fails: evaluate
Says: ^(?!.*[\u0300-\u036f]{3}).*more marks⟩
"""


def evaluate(model, data_loader, loss_history):
    raise ValueError("".join(letter + "\u0334\u0315\u0336\u0308" * 80 for letter in "GRADER"))
