"""The maximum over the image is classified; it should be the mean."""


class ResNet18(ResNet18):
    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).amax(dim=(2, 3)))
