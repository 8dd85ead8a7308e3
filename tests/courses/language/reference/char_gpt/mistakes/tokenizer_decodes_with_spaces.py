"""decode puts spaces between the characters.

"".join(...).
"""


class Tokenizer(Tokenizer):
    def decode(self, tokens):
        return " ".join(self.characters[int(token)] for token in tokens)
