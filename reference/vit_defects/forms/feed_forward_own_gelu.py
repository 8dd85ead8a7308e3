"""A GELU of one's own, by tanh, and layers that are not in a Sequential."""

import numpy as np


class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * torch.pow(x, 3))))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = GELU()
        self.dropout = dropout

    def forward(self, x):
        x = F.dropout(self.act(self.fc1(x)), self.dropout, self.training)
        return F.dropout(self.fc2(x), self.dropout, self.training)
