"""The paper in one file: model, training, decoding. The chapters of the book build it part by part.

    python -m transformer.minimal        # train a toy translator in a minute and try it

There are no input checks and no options: `transformer.model` adds both, and the weights that come
with this package load into either. Numbers such as 3.2.1 are sections of the paper. In shapes, B is
the number of sentences in a batch, S and T are the lengths of source and target, V is the number of
words, and d_k = d_model / heads.
"""

import math
import random
from itertools import chain, count, islice

import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2


# ---------------------------------------------------------------------------- attention (3.2)


def attention(query, key, value, mask):  # 3.2.1, Eq. (1)
    scores = query @ key.mT / math.sqrt(query.size(-1))  # (..., T, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)  # rows sum to 1
    return weights @ value, weights


class MultiHeadAttention(nn.Module):  # 3.2.2
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.query_projection = nn.Linear(d_model, d_model)  # W^Q of all heads
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.output_projection = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask):  # x (B, T, d_model) asks, memory (B, S, d_model) answers
        query = self.split(self.query_projection(x))
        key = self.split(self.key_projection(memory))
        value = self.split(self.value_projection(memory))
        read, weights = attention(query, key, value, mask)
        self.weights = weights.detach()  # (B, heads, T, S), kept for pictures
        return self.output_projection(read.transpose(1, 2).flatten(2))  # heads concatenated

    def split(self, x):  # (B, T or S, d_model) -> (B, heads, T or S, d_k)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def padding_mask(ids):  # True = may attend; (B, 1, 1, S) broadcasts over heads and queries
    return (ids != PAD)[:, None, None, :]


def causal_mask(length):  # 3.2.3: row i may attend to columns 0 to i
    return torch.ones(length, length, dtype=torch.bool).tril()


# ---------------------------------------------------------------------------- layers (3.1, 3.3)


class FeedForward(nn.Module):  # 3.3, Eq. (2)
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.hidden = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.output(self.hidden(x).relu())


class Residual(nn.Module):  # 3.1 and 5.4: LayerNorm(x + Dropout(Sublayer(x)))
    def __init__(self, d_model, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, change):
        return self.norm(x + self.dropout(change))


class EncoderLayer(nn.Module):
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
        y = self.cross_attention_residual(y, self.cross_attention(y, memory, memory_mask))
        return self.feed_forward_residual(y, self.feed_forward(y))


# ---------------------------------------------------------------------------- the model (3)


def sinusoids(length, d_model):  # 3.5: sine in the even columns, cosine in the odd ones
    rate = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = torch.arange(length)[:, None] * rate  # (T, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (T, d_model)


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, d_ff, heads, layers, dropout=0.1):
        super().__init__()
        sizes = d_model, d_ff, heads, dropout
        self.embedding = nn.Embedding(vocab_size, d_model)  # 3.4: for source, target and output
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(layers))
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def embed(self, ids):  # (B, T) -> (B, T, d_model)
        d_model = self.embedding.embedding_dim
        x = self.embedding(ids) * math.sqrt(d_model)
        return self.dropout(x + sinusoids(ids.size(1), d_model).to(x))

    def encode(self, source):
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, padding_mask(source))
        return x  # the memory: a vector for each position of the source

    def decode(self, target, memory, source):
        y, mask = self.embed(target), causal_mask(target.size(1)).to(target.device)
        for layer in self.decoder:
            y = layer(y, mask, memory, padding_mask(source))
        return y @ self.embedding.weight.T  # logits (B, T, V): which token comes next?

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


# ---------------------------------------------------------------------------- training (5)


def pad(rows):  # lists of ids -> one matrix, filled up on the right
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, PAD)


def batches(pairs, tokens):  # 5.1: sentences of similar length, at most `tokens` positions a side
    pairs = random.sample(pairs, len(pairs))
    pairs.sort(key=lambda pair: max(map(len, pair)) // 8)  # in steps of eight; the rest is shuffled
    groups = [pairs[:1]]
    for pair in pairs[1:]:
        longest = max(len(ids) for ids in chain(pair, *groups[-1]))
        if longest * (len(groups[-1]) + 1) > tokens:
            groups.append([])
        groups[-1].append(pair)
    random.shuffle(groups)
    for group in groups:
        sources, targets = zip(*group, strict=True)
        shifted = [[BOS, *ids[:-1]] for ids in targets]  # what the decoder reads: all but the last
        yield pad(sources), pad(shifted), pad(targets)


def smoothed_loss(logits, target, epsilon=0.1):  # 5.4: 0.9 on the right token, 0.1 on all alike
    log_p = logits.log_softmax(dim=-1)  # (B, T, V)
    right = log_p.gather(-1, target[:, :, None])[:, :, 0]
    loss = -(1 - epsilon) * right - epsilon * log_p.mean(dim=-1)
    return loss[target != PAD].mean()


def learning_rate(step, d_model, warmup, factor=1.0):  # 5.3, Eq. (3)
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def train(model, pairs, steps, tokens, warmup, factor=1.0):  # yields the loss of each step
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    device, d_model = model.embedding.weight.device, model.embedding.embedding_dim
    stream = chain.from_iterable(batches(pairs, tokens) for _ in count())  # epoch after epoch
    for step, batch in enumerate(islice(stream, steps), start=1):
        source, shifted, target = (ids.to(device) for ids in batch)
        loss = smoothed_loss(model.train()(source, shifted), target)
        adam.zero_grad()
        loss.backward()
        adam.param_groups[0]["lr"] = learning_rate(step, d_model, warmup, factor)
        adam.step()
        yield loss.item()


def average(checkpoints):  # 6.1: the mean of several state_dicts
    return {name: sum(c[name] for c in checkpoints) / len(checkpoints) for name in checkpoints[0]}


# ---------------------------------------------------------------------------- decoding (6.1)


def next_token(model, target, memory, source):  # log-probabilities (B, V)
    log_p = model.decode(target, memory, source)[:, -1].log_softmax(dim=-1)
    log_p[:, [PAD, BOS]] = -math.inf
    return log_p


@torch.no_grad()
def greedy_search(model, source, extra=50):  # source (B, S) -> a list of ids for each sentence
    memory = model.eval().encode(source)
    limit = (source != PAD).sum(dim=1) - 1 + extra  # the source's length without <eos>, plus extra
    target = torch.full_like(source[:, :1], BOS)
    ended = torch.zeros_like(source[:, 0], dtype=torch.bool)
    while not ended.all():
        best = next_token(model, target, memory, source).argmax(dim=-1)
        target = torch.cat([target, best.masked_fill(ended, PAD)[:, None]], dim=1)
        ended |= (best == EOS) | (target.size(1) > limit)
    return [[token for token in ids if token > EOS] for ids in target.tolist()]


@torch.no_grad()
def beam_search(model, source, beam_size=4, alpha=0.6, extra=50):  # source (1, S) -> a list of ids
    memory = model.eval().encode(source)
    limit = source.size(1) - 1 + extra
    penalty = [((5 + length) / 6) ** alpha for length in range(limit + 1)]  # favours long ones
    alive, finished = [(0.0, [BOS])], []  # log-probability and prefix; score and translation
    for length in range(1, limit + 1):
        rows = len(alive)
        target = torch.tensor([ids for _, ids in alive], device=source.device)
        total = next_token(model, target, memory.expand(rows, -1, -1), source.expand(rows, -1))
        total += torch.tensor([log_p for log_p, _ in alive], device=source.device)[:, None]
        best = total.flatten().topk(2 * beam_size)  # at most half of them end
        grown = []
        for log_p, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, token = divmod(place, total.size(1))
            grown.append((log_p, [*alive[row][1], token]))
        finished += [(log_p / penalty[length], ids) for log_p, ids in grown if ids[-1] == EOS]
        alive = [(log_p, ids) for log_p, ids in grown if ids[-1] != EOS][:beam_size]
        if finished and max(finished)[0] >= alive[0][0] / penalty[limit]:
            break  # no prefix can win any more: a product of probabilities only shrinks
    _, ids = max(finished or alive)
    return [token for token in ids if token > EOS]


if __name__ == "__main__":
    from transformer.data import toy  # the only thing that isn't in this file

    torch.set_num_threads(1)  # a model this small runs fastest on one core
    lines, test = toy.corpus()
    pairs = [(toy.encode(english), toy.encode(german)) for english, german in lines]
    model = Transformer(len(toy.WORDS), d_model=64, d_ff=128, heads=2, layers=2)
    for step, loss in enumerate(train(model, pairs, 2600, tokens=400, warmup=400, factor=0.4), 1):
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss:.3f}", flush=True)
    found = greedy_search(model, pad(toy.encode(sentence.english) for sentence in test))
    right = sum(s.is_right(toy.decode(ids)) for s, ids in zip(test, found, strict=True))
    print(f"{right} of {len(test)} sentences with new combinations of words are exactly right")
    for sentence in (toy.TIRED, toy.WIDE):
        german = beam_search(model, torch.tensor([toy.encode(sentence.english)]))
        print(f"{sentence.english}\n  {toy.decode(german)}")
