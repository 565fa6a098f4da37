"""The topics of five notes on the paper that this book started from, and where each is treated.

The notes are of the kind that a reader meets first: a student's questions and answers, slides of a
lecture, a post that builds intuition, a company's blog, and notes taken while reading an
illustrated guide. The words here are this book's.

Paper: all sections
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["explained", "made exact", "put right", "answered"]


@dataclass(frozen=True)
class Topic:
    """Something that a note speaks about.

    Args:
        text: what it is, in a few words.
        state: what the book does with it. A question that the note left open is "answered"; what
            the note says is "explained", "made exact" or "put right".
        places: where: names of notebooks without ".ipynb", or pages such as "book/notation.md",
            with the anchor of a heading behind a "#" or without.

    Paper: all sections
    """

    text: str
    state: State
    places: tuple[str, ...]


def _topics(state: State, *rows: tuple[str, ...]) -> list[Topic]:
    return [Topic(text, state, tuple(places)) for text, *places in rows]


_GRADIENT = "01_why_attend#the-experiment-how-far-does-a-gradient-reach"
_BOTTLENECK = "01_why_attend#what-attention-was-for-the-fixed-length-bottleneck"
_NO_WAITING = "01_why_attend#break-it-a-recurrence-without-waiting"
_MISREAD = "01_why_attend#what-notes-on-this-get-wrong"
_DICTIONARY = "02_attention#a-dictionary-all-or-nothing"
_SOFT = "02_attention#a-soft-lookup-by-hand"
_THREE_LINES = "02_attention#the-same-in-three-lines"
_SOURCES = "02_attention#where-do-q-k-and-v-come-from"
_AXIS = "02_attention#the-wrong-axis"
_WIDTH = "04_scaling#how-wide-is-a-dot-product"
_ROOT = "04_scaling#the-wrong-number-under-the-root"
_AT_ONCE = "05_masks#what-the-causal-mask-buys-all-steps-at-once"
_BEFORE = "05_masks#before-the-softmax"
_HEADS = "06_heads#heads-one-by-one"
_LOOKUPS = "06_heads#the-experiment-one-question-four-look-ups"
_HEAD_COST = "06_heads#what-does-it-cost"
_NO_ORDER = "07_positions#first-take-the-positions-away"
_SINES = "07_positions#the-papers-table-by-hand"
_LOGITS = "10_embeddings#out-logits-then-probabilities"
_PLAN = "11_assembly#the-plan"
_USES = "11_assembly#the-three-uses-of-attention"
_TOKEN = "11_assembly#one-token-followed-through-every-shape"
_SMOOTHING = "13_recipe#label-smoothing"
_WORK = "15_table_1#column-1-complexity-per-layer"
_WAITING = "15_table_1#column-2-sequential-operations"
_PATHS = "15_table_1#column-3-maximum-path-length"
_CROSSING = "15_table_1#where--and--cross"
_COST = "16_training#what-will-it-cost"
_LONG, _BEYOND, _MYTH = "22_long_sequences#", "23_beyond_translation#", "24_myths#"

#: The topics of each note, by the kind of note.
NOTES: dict[str, list[Topic]] = {
    "Study notes": [
        *_topics(
            "answered",
            ("What is attention?", "02_attention"),
            ("The formula behind 'a compatibility function of the query with the key'",
             _THREE_LINES),
            ("How does a Transformer reach distant positions?", _GRADIENT),
            ("Why are recurrent models slow?", _NO_WAITING, _WAITING),
            ("Why several heads and not one?", _LOOKUPS, _HEAD_COST),
        ),
        *_topics(
            "explained",
            ("Path length, and why short paths help learning", _GRADIENT, _PATHS),
            ("The sequential operations of a recurrent layer", _WAITING),
            ("Encoder and decoder, and the points at which they meet", _PLAN),
            ("Six layers with two or three sub-layers", "11_assembly#by-hand"),
            ("LayerNorm(x + Sublayer(x))", "09_depth#the-wrapper-of-every-sub-layer"),
            ("Cross-attention over the output of the encoder", _USES),
            ("The definition of attention, word by word", "02_attention#build-it"),
            ("Dot-product attention with and without the division", "04_scaling#no-root-at-all"),
            ("What additive attention is", "03_additive_or_dot_product#build-it"),
            ("Self-attention: one sequence, related to itself", _SOURCES),
            ("Multi-head attention: project, attend, concatenate, project again", _HEADS),
            ("Global dependencies between input and output", _BOTTLENECK),
        ),
        *_topics(
            "made exact",
            ("'Based solely on attention': what else is in the model",
             "08_feed_forward#where-the-parameters-are",
             _MYTH + "a-transformer-is-nothing-but-attention"),
            ("Why recurrence and convolution went: three reasons, and none comes first",
             "15_table_1#table-1-measured"),
            ("How many convolutional layers connect all positions", _PATHS),
            ("Is the comparison of path lengths a proof?",
             "15_table_1#the-paper-and-what-we-measured"),
            ("What long sequences cost in memory, and whether they must be cut",
             "01_why_attend#memory", _LONG + "the-square-and-when-it-matters"),
            ("One abbreviation for self-attention with and without a mask", _USES),
            ("Large dot products and small gradients: what the authors suspect",
             "04_scaling#what-does-a-softmax-pass-on"),
            ("If additive attention works better, why not use it?",
             "03_additive_or_dot_product#the-experiment-who-learns-as-d_k-grows",
             "03_additive_or_dot_product#what-does-it-cost"),
        ),
        *_topics(
            "put right",
            ("What 'scaled' refers to, and what the softmax is taken of",
             _MYTH + "scaled-means-that-the-softmax-scales-the-output"),
            ("Is convolution slow, or is it short-sighted?", _MISREAD, _WORK,
             _MYTH + "convolutions-are-slow"),
            ("Operations between two positions that grow 'exponentially'", _MISREAD, _MYTH
             + "the-operations-between-two-words-grow-exponentially-with-their-distance"),
        ),
    ],
    "Lecture slides": [
        *_topics(
            "explained",
            ("Figure 1 of the paper", _PLAN),
            ("Weights, and the context vector that they make", _BOTTLENECK),
            ("Inputs that are computed anew from their context", _SOURCES),
            ("Queries, keys and values as linear maps of the input", _SOURCES),
            ("A softmax is sensitive to large inputs", "04_scaling#what-does-a-softmax-pass-on"),
            ("Distant dependencies, beside a recurrent network", _GRADIENT),
            ("Cost that grows with the square of the length", "01_why_attend#operations",
             _LONG + "the-square-and-when-it-matters"),
            ("Attention to some pairs of positions only", "15_table_1#build-it",
             _LONG + "attend-to-less"),
            ("Gradient accumulation", "13_recipe#many-small-batches-for-one-large-one",
             _LONG + "in-parts-gradient-accumulation"),
            ("Activations computed twice to save memory", _LONG + "compute-it-twice-checkpointing"),
        ),
        *_topics(
            "made exact",
            ("The 'separate' network that computes the weights",
             "03_additive_or_dot_product#build-it"),
            ("Which state of the decoder asks, the one before or the one now?", _BOTTLENECK),
            ("Attention between the inputs themselves, without parameters", _SOURCES),
            ("'An operation on sets': shuffled inputs give shuffled outputs",
             "02_attention#shuffle-the-table",
             _MYTH + "self-attention-is-invariant-to-shuffling"),
            ("By the root of which number to divide", _ROOT,
             _MYTH + "the-scores-are-divided-by-the-number-of-dimensions"),
            ("Why a root: the length of a vector, or the variance of a product", _WIDTH),
            ("Blocks of self-attention and a small network: what else they need",
             "11_assembly#by-hand"),
            ("Position embeddings, learned or computed", "07_positions#build-it"),
            ("Parallel in training, one by one in decoding", _AT_ONCE, "14_decoding#the-cache",
             _MYTH + "a-transformer-writes-all-words-at-once"),
            ("'Much better efficiency', and the length at which it ends", _CROSSING,
             _MYTH + "self-attention-is-cheaper-than-recurrence"),
            ("Half precision: what stays in float32",
             _LONG + "half-of-the-bits-float16-and-bfloat16", _MYTH
             + "half-precision-accumulation-and-checkpointing-lift-the-quadratic-cost"),
        ),
        *_topics(
            "put right",
            ("A head as one row of a matrix", "06_heads#all-heads-at-once",
             _MYTH + "a-head-is-a-row-of-the-weight-matrix-one-for-each-interpretation"),
            ("One head for each meaning of a word", "06_heads#what-do-the-heads-do",
             _MYTH + "every-head-learns-a-role-of-its-own"),
            ("How Transformer-XL treats long texts", _LONG + "segments-with-a-memory",
             _MYTH + "transformer-xl-divides-the-text-hierarchically"),
        ),
    ],
    "A post on intuition": [
        *_topics(
            "explained",
            ("One arrow in place of three: direct influence", _GRADIENT),
            ("Some words matter more: a weighted look-up", _SOFT),
            ("Queries, and pairs of key and value", _DICTIONARY),
            ("Any similarity may be the score", "03_additive_or_dot_product"),
            ("A softmax makes weights that sum to 1", _AXIS),
            ("Why the scores are divided", _WIDTH),
            ("Several attentions with projections of their own", _HEADS),
            ("Minus infinity before the softmax", _BEFORE),
            ("Why positions must be put in", _NO_ORDER),
            ("The formula of the sines and cosines", _SINES),
            ("Sinusoids as a binary counter", "07_positions#a-clock-with-many-hands"),
            ("Pieces of an image as tokens", _BEYOND + "digits-patches-as-tokens"),
        ),
        *_topics(
            "made exact",
            ("Slow, sequential, with vanishing gradients: which models are?", _GRADIENT),
            ("Attention before the Transformer, and the vector that it replaced", _BOTTLENECK,
             _MYTH + "the-transformer-invented-attention"),
            ("'The whole sequence at once, irrespective of position'", _NO_ORDER,
             "05_masks#three-masks-three-shapes"),
            ("Heads for verbs, tenses, genders", "20_heads_learned#look-first",
             "20_heads_learned#does-a-role-make-a-head-important"),
            ("A weighted mean of what?", _SOURCES),
            ("After the heads are joined: the matrix that mixes them", _HEADS),
            ("Word vectors from elsewhere, or learned along",
             "10_embeddings#in-a-lookup-that-is-a-matrix-product",
             _MYTH + "the-embeddings-are-ready-made-word-vectors"),
            ("A shift of positions as a linear map, fixed and not learned",
             "07_positions#moving-by--is-a-rotation"),
            ("Longer sequences than in training",
             "07_positions#the-experiment-positions-that-training-never-saw",
             _MYTH + "sinusoids-let-the-model-read-longer-sentences"),
        ),
        *_topics(
            "put right",
            ("'Self-attention is when key and value are the same'", _SOURCES,
             _MYTH + "in-self-attention-the-key-and-the-value-are-the-same"),
            ("'Keys and values are the embeddings of the words'", _SOURCES, _TOKEN,
             _MYTH + "keys-and-values-are-the-word-embeddings"),
            ("Why the decoder is masked",
             "05_masks#the-experiment-a-model-that-sees-the-answer",
             _MYTH + "the-mask-is-there-because-what-follows-is-garbage"),
            ("Why positions are added and not concatenated",
             "07_positions#why-add-and-not-concatenate",
             _MYTH + "concatenated-positions-would-overflow-the-integers"),
        ),
    ],
    "A company's blog": [
        *_topics(
            "answered",
            ("Why is attention so efficient?", "03_additive_or_dot_product#what-does-it-cost",
             "15_table_1#table-1-measured"),
            ("Have a model built, or build it: data, hours, money", _COST),
        ),
        *_topics(
            "explained",
            ("A model that turns one sequence into another", "11_assembly", "17_translation"),
            ("Recurrent training waits for each step", _NO_WAITING),
            ("Scaling keeps the products manageable", _WIDTH),
            ("A softmax decides what matters", _SOFT),
            ("The feed-forward network, one position at a time",
             "08_feed_forward#one-position-by-hand"),
            ("Positions are added to the embeddings", _SINES),
            ("The decoder looks into the source", _USES),
            ("Arrows that point the same way: a dot product as a match", _SOFT),
            ("The learning-rate schedule", "13_recipe#eq-3-the-learning-rate"),
            ("Dropout and label smoothing", "13_recipe#dropout-and-where", _SMOOTHING),
            ("Summarising a text", _BEYOND + "headlines-a-whole-transformer"),
            ("Classifying a text, and its sentiment", _BEYOND + "sentiment-where-order-decides"),
            ("Predicting the runoff of a river", _BEYOND + "a-river-where-a-recurrence-fits"),
            ("Loading and fine-tuning a ready-made model", _BEYOND + "ready-made-models",
             _BEYOND + "fine-tuning-and-what-is-forgotten"),
            ("Hardware: what a GPU is worth", "16_training#the-recorded-runs", _COST),
            ("Bias in the data, bias in the output",
             _BEYOND + "what-is-in-the-text-is-in-the-translation"),
        ),
        *_topics(
            "made exact",
            ("Less 'computational complexity' than Extended Neural GPU, ByteNet, ConvS2S",
             _WORK, _PATHS),
            ("Two stacks: residual sums, norms, a mask, six layers", _PLAN),
            ("Several subspaces, at several positions", "06_heads#what-does-a-head-see"),
            ("Shared embeddings, and the factor in front of them",
             "10_embeddings#one-matrix-three-jobs", "10_embeddings#why-the-factor-"),
            ("The summary of fixed size: which models have it", _BOTTLENECK),
            ("Self-attention is in the decoder, too", _USES),
            ("'Nothing gets left out': what one weighted mean can hold",
             "02_attention#the-experiment-how-many-entries-can-one-lookup-keep-apart"),
            ("Efficient on short sequences: in which of three senses?", _CROSSING),
            ("Better than ensembles, at a fraction of the cost",
             "17_translation#table-2-claim-by-claim",
             _MYTH + "the-base-model-beat-all-systems-before-it"),
            ("Queries, keys and values 'from the input': from which?", _SOURCES, _USES),
            ("'Scaled by the square root': divided by it", _ROOT),
            ("Scores before the softmax, weights after it", _THREE_LINES),
            ("A panel of experts, a team of detectives", "06_heads#what-do-the-heads-do"),
            ("An interpreter for many languages at once", _BEYOND + "the-interpreter"),
        ),
        *_topics(
            "put right",
            ("Different weight matrices for each token",
             "08_feed_forward#shared-between-positions-not-between-layers",
             _MYTH + "every-token-has-weight-matrices-of-its-own"),
            ("Which library the ready-made classes are from", _BEYOND + "ready-made-models",
             _MYTH + "tfautomodel-comes-from-tensorflow-hub"),
        ),
    ],
    "Notes on an illustrated guide": [
        *_topics(
            "answered",
            ("Why so many heads?", "06_heads"),
            ("What are residual sums and layer norm for?", "09_depth#the-residual",
             "09_depth#leave-a-part-of-the-wrapper-out"),
            ("May the decoder attend to earlier positions only, or to its own too?",
             "05_masks#three-masks-three-shapes", "05_masks#off-by-one"),
            ("Which loss?", _SMOOTHING, "16_training#ten-lines"),
            ("How does training work?", "16_training#build-it"),
        ),
        *_topics(
            "explained",
            ("From words to embeddings, positions, layers and words again", _TOKEN),
            ("Self-attention as relevance", _SOFT),
            ("Query, key and value as question, label and content", _DICTIONARY),
            ("Each position on its own path, and where the paths meet",
             "08_feed_forward#all-positions-at-once"),
            ("Three vectors from three matrices", _SOURCES),
            ("64 numbers where the embedding has 512", _HEAD_COST),
            ("A score for each pair of words", _SOFT),
            ("A softmax: positive, and 1 in sum", _AXIS),
            ("Values times weights, summed", _SOFT),
            ("The same for all positions, as matrices", _THREE_LINES),
            ("Different positions and subspaces", "06_heads#what-one-mean-cannot-say"),
            ("Eight draws, eight results, joined and multiplied by one matrix", _HEADS),
            ("Masked before the softmax", _BEFORE),
            ("Cross-attention: queries from below, keys and values from the encoder", _USES),
            ("Logits as wide as the vocabulary", _LOGITS, "12_tokens_and_batches#how-many-tokens"),
            ("Labels as one-hot vectors, and their smooth kin", _SMOOTHING),
            ("The distribution that training aims at",
             "13_recipe#label-smoothing-worse-perplexity"),
            ("What to read beside it", "book/references.md"),
        ),
        *_topics(
            "made exact",
            ("As many layers in the decoder as in the encoder?", "11_assembly#by-hand",
             _MYTH + "encoder-and-decoder-must-be-equally-deep"),
            ("Keys and values for each layer of the decoder, by its own matrices", _USES,
             _MYTH + "the-encoder-hands-one-set-of-keys-and-values-to-the-decoder"),
            ("'it', and the animal", "20_heads_learned#the-sentences-of-figures-3-to-5"),
            ("Inputs that are 'nothing but' embeddings", _TOKEN),
            ("Divided by 8: the root of which size?", _ROOT,
             _MYTH + "the-divisor-is-the-root-of-the-size-of-queries-keys-and-values"),
            ("Distant dependencies thanks to several heads?", _GRADIENT,
             _MYTH + "several-heads-are-there-for-long-range"),
            ("Positions that 'the model learns'", _SINES,
             _MYTH + "the-model-learns-the-pattern-of-the-sinusoids"),
            ("Who selects the word: the softmax, or the search?", "14_decoding#greedy-search",
             _MYTH + "the-softmax-picks-the-word"),
        ),
        *_topics(
            "put right",
            ("A linear layer that gives probabilities", _LOGITS,
             _MYTH + "the-last-linear-layer-gives-probabilities"),
            ("Position 1 attends most to word 1", _SOURCES,
             _MYTH + "a-word-attends-most-to-itself"),
            ("Sines in the left half, cosines in the right",
             "07_positions#two-layouts-two-exponents",
             _MYTH + "the-paper-puts-sines-on-the-left-and-cosines-on-the-right"),
        ),
    ],
}  # fmt: skip
