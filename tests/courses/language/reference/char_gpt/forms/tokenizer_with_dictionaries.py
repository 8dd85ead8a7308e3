"""Two dictionaries, there and back."""


class Tokenizer:
    def __init__(self, text):
        self.to_token = {c: i for i, c in enumerate(sorted(set(text)))}
        self.to_character = {i: c for c, i in self.to_token.items()}

    @property
    def size(self):
        return len(self.to_token)

    def encode(self, text):
        return [self.to_token[c] for c in text]

    def decode(self, tokens):
        return "".join(map(self.to_character.__getitem__, map(int, tokens)))
