"""The characters are numbered as they appear, not in alphabetical order.

sorted(set(text)).
"""


class Tokenizer(Tokenizer):
    def __init__(self, text):
        self.characters = list(dict.fromkeys(text))
        self.size = len(self.characters)
