"""The patches are put in a new random order each time, even in evaluation mode: a patch gets the position of
another one.

Leave the patches in the order in which the image has them: no shuffling in forward, not even in training.

Look for: randperm(), shuffle(), rand() | randint() | multinomial()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        tokens = tokens[:, torch.randperm(tokens.shape[1])]
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
