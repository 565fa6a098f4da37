"""The paper in one file. The chapters of the book build it part by part.

    python -m transformer.minimal  # train a toy translator and try it

There are no input checks and no options: `transformer.model` adds both,
and the weights that come with this package load into either. Numbers such
as 3.2.1 are sections of the paper. In shapes, B is the number of sentences
in a batch, S and T are the lengths of source and target, V is the number
of words, and d_k = d_model / heads.
"""

import math
import random
from itertools import chain, count, islice

import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2


# ---------------------------------------------- attention (3.2)


def attention(query, key, value, mask):
    """Read values, weighted by how well their keys match (3.2.1)."""
    scores = query @ key.mT / math.sqrt(query.size(-1))  # (..., T, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ value, weights


class MultiHeadAttention(nn.Module):
    """Look up several things at once, each with its own head (3.2.2)."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        # W^Q, W^K, W^V of all heads side by side, and W^O
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.output_projection = nn.Linear(d_model, d_model)

    # x (B, T, d_model) asks, memory (B, S, d_model) answers
    def forward(self, x, memory, mask):
        query = self.split(self.query_projection(x))
        key = self.split(self.key_projection(memory))
        value = self.split(self.value_projection(memory))
        read, weights = attention(query, key, value, mask)
        self.weights = weights.detach()  # (B, heads, T, S), for pictures
        # Back to (B, T, d_model), the heads side by side.
        return self.output_projection(read.transpose(1, 2).flatten(2))

    # (B, T or S, d_model) -> (B, heads, T or S, d_k)
    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def padding_mask(ids):
    """Hide padding: True = may attend."""
    return (ids != PAD)[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(length):
    """Hide the future: row i may attend to columns 0 to i (3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool).tril()


# ---------------------------------------------- layers (3.1, 3.3)


class FeedForward(nn.Module):
    """Work on each position alone: two linear maps and a ReLU (3.3)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.hidden = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.output(self.hidden(x).relu())


class Residual(nn.Module):
    """Add a sub-layer's output to its input, then normalise (3.1)."""

    def __init__(self, d_model, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, change):  # change = Sublayer(x)
        return self.norm(x + self.dropout(change))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (3.1)."""

    def __init__(self, d_model, d_ff, heads, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_residual = Residual(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, dropout)

    def forward(self, x, mask):
        x = self.self_attention_residual(x, self.self_attention(x, x, mask))
        return self.feed_forward_residual(x, self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Self-attention, a look at the memory, then feed-forward (3.1)."""

    def __init__(self, d_model, d_ff, heads, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_residual = Residual(d_model, dropout)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_residual = Residual(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, dropout)

    def forward(self, y, mask, memory, memory_mask):
        y = self.self_attention_residual(y, self.self_attention(y, y, mask))
        read = self.cross_attention(y, memory, memory_mask)
        y = self.cross_attention_residual(y, read)
        return self.feed_forward_residual(y, self.feed_forward(y))


# ---------------------------------------------- the model (3)


def sinusoids(length, d_model):
    """Give each position a pattern of sines and cosines (3.5)."""
    rate = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = torch.arange(length)[:, None] * rate  # (T, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Embedding(nn.Embedding):
    """Turn tokens into vectors that know their position (3.4)."""

    def forward(self, ids):  # (B, T) -> (B, T, d_model)
        x = super().forward(ids) * math.sqrt(self.embedding_dim)
        return x + sinusoids(ids.size(1), self.embedding_dim).to(x)


class Stack(nn.ModuleList):
    """Layers, one after the other (3.1)."""

    def forward(self, x, *inputs):
        for layer in self:
            x = layer(x, *inputs)
        return x


class Transformer(nn.Module):
    """The encoder-decoder model of the paper (3, Figure 1)."""

    def __init__(
        self, vocab_size, d_model, d_ff, heads, layers, dropout=0.1
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = nn.Dropout(dropout)
        sizes = d_model, d_ff, heads, dropout
        self.encoder = Stack(EncoderLayer(*sizes) for _ in range(layers))
        self.decoder = Stack(DecoderLayer(*sizes) for _ in range(layers))
        for weight in filter(lambda w: w.dim() > 1, self.parameters()):
            nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def encode(self, source):  # (B, S) -> the memory (B, S, d_model)
        x = self.dropout(self.embedding(source))
        return self.encoder(x, padding_mask(source))

    def decode(self, target, memory, source):  # -> logits (B, T, V)
        y = self.dropout(self.embedding(target))
        mask = causal_mask(target.size(1)).to(target.device)
        y = self.decoder(y, mask, memory, padding_mask(source))
        return y @ self.embedding.weight.T  # the same matrix once more

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


# ---------------------------------------------- training (5)


def pad(rows):
    """Make one matrix of lists of ids, filled up on the right."""
    return nn.utils.rnn.pad_sequence([*map(torch.tensor, rows)], True, PAD)


def batches(pairs, tokens):
    """Yield all pairs in batches of similar length (5.1)."""
    pairs = random.sample(pairs, len(pairs))
    # By length in steps of eight; within a step the order stays random.
    pairs.sort(key=lambda pair: max(map(len, pair)) // 8)
    groups = [pairs[:1]]
    for pair in pairs[1:]:
        longest = max(len(ids) for ids in chain(pair, *groups[-1]))
        if longest * (len(groups[-1]) + 1) > tokens:
            groups.append([])
        groups[-1].append(pair)
    random.shuffle(groups)
    for group in groups:
        sources, targets = zip(*group, strict=True)
        shifted = [[BOS, *ids[:-1]] for ids in targets]  # for the decoder
        yield pad(sources), pad(shifted), pad(targets)


def smoothed_loss(logits, target, epsilon=0.1):
    """Want 90% on the right token and 10% shared by all (5.4)."""
    log_p = logits.log_softmax(dim=-1)  # (B, T, V)
    right = log_p.gather(-1, target[:, :, None])[:, :, 0]
    loss = -(1 - epsilon) * right - epsilon * log_p.mean(dim=-1)
    return loss[target != PAD].mean()


def learning_rate(step, d_model, warmup, factor=1.0):
    """Rise for the warm-up, then fall (5.3)."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def train(model, pairs, steps, tokens, warmup, factor=1.0):
    """Train, and yield the loss of each step (5)."""
    options = dict(betas=(0.9, 0.98), eps=1e-9, fused=True)
    adam = torch.optim.Adam(model.parameters(), **options)
    weight = model.embedding.weight  # (V, d_model)
    epochs = (batches(pairs, tokens) for _ in count())
    stream = islice(chain.from_iterable(epochs), steps)
    for step, batch in enumerate(stream, start=1):
        source, shifted, target = (ids.to(weight.device) for ids in batch)
        loss = smoothed_loss(model.train()(source, shifted), target)
        adam.zero_grad()
        loss.backward()
        rate = learning_rate(step, weight.size(1), warmup, factor)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        yield loss.item()


def average(states):
    """Average the state_dicts of several checkpoints (6.1)."""
    return {k: sum(c[k] for c in states) / len(states) for k in states[0]}


# ---------------------------------------------- decoding (6.1)


def next_token(model, target, memory, source):
    """Return the log-probabilities of what comes next: (B, V)."""
    log_p = model.decode(target, memory, source)[:, -1].log_softmax(dim=-1)
    log_p[:, [PAD, BOS]] = -math.inf
    return log_p


@torch.no_grad()
def greedy_search(model, source, extra=50):
    """Take the best token each time: (B, S) -> B lists of ids."""
    memory = model.eval().encode(source)
    # The length of the source without <eos>, plus extra.
    limit = (source != PAD).sum(dim=1) - 1 + extra
    target = torch.full_like(source[:, :1], BOS)
    ended = torch.zeros_like(source[:, 0], dtype=torch.bool)
    while not ended.all():
        best = next_token(model, target, memory, source).argmax(dim=-1)
        best = best.masked_fill(ended, PAD)
        target = torch.cat([target, best[:, None]], dim=1)
        ended |= (best == EOS) | (target.size(1) > limit)
    return [[i for i in ids if i > EOS] for ids in target.tolist()]


@torch.no_grad()
def beam_search(model, source, size=4, alpha=0.6, extra=50):
    """Keep the best prefixes of one sentence: (1, S) -> ids (6.1)."""
    memory = model.eval().encode(source)
    limit = source.size(1) - 1 + extra
    penalty = [((5 + n) / 6) ** alpha for n in range(limit + 1)]
    alive, finished = [(0.0, [BOS])], []  # log-probability or score, ids
    for length in range(1, limit + 1):
        prefixes, alive = alive[:size], []
        target = torch.tensor([ids for _, ids in prefixes]).to(source)
        # One memory serves all prefixes.
        total = next_token(model, target, memory, source)
        total += torch.tensor([[log_p] for log_p, _ in prefixes]).to(total)
        best = total.flatten().topk(2 * size)  # at most half of them end
        for log_p, place in zip(*(x.tolist() for x in best), strict=True):
            row, token = divmod(place, total.size(1))
            ids = [*prefixes[row][1], token]
            if token == EOS:
                finished.append((log_p / penalty[length], ids))
            else:
                alive.append((log_p, ids))
        # Probabilities only shrink: can a prefix still win?
        if finished and max(finished)[0] >= alive[0][0] / penalty[limit]:
            break
    return [i for i in max(finished or alive)[1] if i > EOS]


if __name__ == "__main__":
    from transformer.data import toy  # all that isn't in this file

    torch.set_num_threads(1)  # fastest for a model this small
    lines, test = toy.corpus()
    pairs = [(toy.encode(e), toy.encode(g)) for e, g in lines]
    model = Transformer(len(toy.WORDS), 64, 128, heads=2, layers=2)
    training = train(model, pairs, 3000, tokens=400, warmup=400, factor=0.4)
    for step, loss in enumerate(training, start=1):
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss:.3f}", flush=True)
    source = pad(toy.encode(sentence.english) for sentence in test)
    german = map(toy.decode, greedy_search(model, source))
    right = sum(map(toy.Sentence.is_right, test, german))
    print(f"{right} of {len(test)} new sentences are exactly right")
    for sentence in (toy.TIRED, toy.WIDE):
        ids = beam_search(model, pad([toy.encode(sentence.english)]))
        print(sentence.english, toy.decode(ids), sep="\n  ")
