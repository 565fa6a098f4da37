"""Published scores, each with its source and its metric.

BLEU scores can be compared only if they were computed in the same way on the same sentences, so
each score names both, and tables keep the metrics apart.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One way to compute a score."""

    title: str  #: for the head of a table
    meaning: str  #: how it is computed and what it can be compared with


#: The metrics, by the key that scores carry.
METRICS = {
    "tokenised": Metric(
        "BLEU on Moses tokens",
        "BLEU on Moses tokens, with case. German compounds are split at their hyphens, as in the "
        "script of the paper's published code; the paper itself does not name its metric. "
        "Published systems that were scored both ways lose 0.2 to 1.5 points in sacreBLEU "
        "(English-German) and 1.8 to 2.9 points (English-French).",
    ),
    "sacrebleu": Metric(
        "sacreBLEU",
        "BLEU on plain text with its case, cut into words by sacreBLEU itself (13a). Anyone can "
        "repeat it. Do not compare it with BLEU on tokenised text.",
    ),
    "sacrebleu-lowercase": Metric(
        "sacreBLEU, lower-cased",
        "BLEU on plain text without regard to case, tokenised by sacreBLEU itself (13a).",
    ),
    "moses-lowercase": Metric(
        "BLEU on lower-cased Moses tokens",
        "Both translation and reference are lower-cased and tokenised. "
        "Without case the task is easier, so do not compare it with sacreBLEU on cased text.",
    ),
    "spacy-lowercase": Metric(
        "BLEU on lower-cased spaCy words",
        "BLEU on lower-cased words as spaCy splits them, with a vocabulary of whole words: words "
        "that are rare in training are unknown. Do not compare it with BLEU on any other tokens.",
    ),
}


@dataclass(frozen=True)
class PublishedScore:
    """A published score."""

    system: str
    languages: tuple[str, str]  #: codes of source and target
    test_set: str  #: a name of :func:`~transformer_book.studies.translation.summary.test_set`
    score: float  #: 0 to 100, with the digits that were printed
    metric: str  #: a key of ``METRICS``
    trained_on: str  #: name of the training text
    source: str  #: of the score, in words
    url: str
    key: str | None = None  #: its entry in the bibliography of the book
    architecture: str = "transformer"  #: or "recurrent", "convolutional", "other"
    parameters: int | None = None
    counted_here: bool = False  #: whether the parameters were counted by this package
    training_flops: float | None = None  #: hardware time as in Table 2, not arithmetic

    @property
    def is_ensemble(self) -> bool:
        """Whether several models translated together."""
        return "ensemble" in self.system


@dataclass(frozen=True)
class Conversion:
    """One output, scored in both ways by the same authors."""

    system: str
    languages: tuple[str, str]  #: codes of source and target
    tokenised: float  #: as "tokenised" in ``METRICS``; without case if ``lowercase``
    sacrebleu: float  #: as "sacrebleu" in ``METRICS``; without case if ``lowercase``
    source: str  #: of the scores, in words
    url: str
    key: str | None = None  #: its entry in the bibliography of the book
    lowercase: bool = False


_EN_DE, _EN_FR, _DE_EN = ("en", "de"), ("en", "fr"), ("de", "en")
_ATTENTION: dict[str, Any] = dict(
    url="https://arxiv.org/abs/1706.03762", key="vaswani2017attention"
)
_SCALING = "https://github.com/facebookresearch/fairseq/tree/main/examples/scaling_nmt"
_JOEY: dict[str, Any] = dict(
    source="its benchmarks",
    url="https://github.com/joeynmt/joeynmt/blob/main/docs/source/benchmarks.rst",
    key="kreutzer2019joey",
)
_README = "README of its repository"

# Table 2 of the paper. The scores of other systems are the paper's quotations.
_TABLE_2 = [
    # system, architecture, parameters, BLEU and FLOPs en-de, BLEU and FLOPs en-fr
    ("ByteNet", "convolutional", None, 23.75, None, None, None),
    ("Deep-Att + PosUnk", "recurrent", None, None, None, 39.2, 1.0e20),
    ("GNMT + RL", "recurrent", None, 24.6, 2.3e19, 39.92, 1.4e20),
    ("ConvS2S", "convolutional", None, 25.16, 9.6e18, 40.46, 1.5e20),
    ("MoE", "other", None, 26.03, 2.0e19, 40.56, 1.2e20),
    ("Deep-Att + PosUnk, ensemble", "recurrent", None, None, None, 40.4, 8.0e20),
    ("GNMT + RL, ensemble", "recurrent", None, 26.30, 1.8e20, 41.16, 1.1e21),
    ("ConvS2S, ensemble", "convolutional", None, 26.36, 7.7e19, 41.29, 1.2e21),
    ("Transformer, base", "transformer", 65_000_000, 27.3, 3.3e18, 38.1, 3.3e18),
    ("Transformer, big", "transformer", 213_000_000, 28.4, 2.3e19, 41.8, 2.3e19),
]
_TUTORIALS = [
    ("LSTM, no attention, tutorial", "recurrent", 13_900_000, 13.76),
    ("GRU, no attention, tutorial", "recurrent", 14_200_000, 20.61),
    ("GRU with attention, tutorial", "recurrent", 20_500_000, 28.30),
    ("ConvS2S, tutorial", "convolutional", 37_400_000, 34.14),
    ("Transformer, tutorial", "transformer", 9_040_000, 36.52),
]
_LIUM = [(_EN_DE, 2016, 39.00), (_EN_DE, 2017, 31.25), (_EN_FR, 2016, 59.02), (_EN_FR, 2017, 51.93)]

#: Every published score of the book.
PUBLISHED: tuple[PublishedScore, ...] = (
    *(
        PublishedScore(
            system, pair, "newstest2014", score, "tokenised", "WMT14", "Table 2", **_ATTENTION,
            architecture=architecture, parameters=parameters, training_flops=flops,
        )
        for system, architecture, parameters, german, german_flops, french, french_flops in _TABLE_2
        for pair, score, flops in ((_EN_DE, german, german_flops), (_EN_FR, french, french_flops))
        if score is not None
    ),
    PublishedScore(
        "Transformer, base size, Joey NMT", _EN_DE, "newstest2014", 24.38, "sacrebleu", "WMT14",
        **_JOEY, parameters=60_500_000,
    ),
    PublishedScore(
        "Transformer, big size, Ott et al.", _EN_DE, "newstest2014", 28.6, "sacrebleu", "WMT16",
        "README in fairseq", _SCALING, "ott2018scaling",
    ),
    PublishedScore(
        "Transformer-Tiny, Wu et al.", _EN_DE, "multi30k-test2016", 41.02, "moses-lowercase",
        "Multi30K", _README,
        "https://github.com/LividWo/Revisit-MMT/blob/master/README-baseline.md", "wu2021good",
        parameters=2_568_192, counted_here=True,
    ),
    *(
        PublishedScore(
            "GRU with attention, LIUM-CVC (one run)", pair, f"multi30k-test{year}", score,
            "moses-lowercase", "Multi30K", _README, "https://github.com/lium-lst/wmt17-mmt",
            "caglayan2017lium", architecture="recurrent",
        )
        for pair, year, score in _LIUM
    ),
    *(
        PublishedScore(
            system, _DE_EN, "multi30k-test2016", score, "spacy-lowercase", "Multi30K",
            "notebooks of pytorch-seq2seq", "https://github.com/bentrevett/pytorch-seq2seq",
            architecture=architecture, parameters=parameters,
        )
        for system, architecture, parameters, score in _TUTORIALS
    ),
    PublishedScore(
        "RNN, Joey NMT", _DE_EN, "iwslt14-test", 30.74, "sacrebleu-lowercase", "IWSLT14", **_JOEY,
        architecture="recurrent", parameters=61_000_000,
    ),
    PublishedScore(
        "Transformer, Joey NMT", _DE_EN, "iwslt14-test", 33.73, "sacrebleu-lowercase", "IWSLT14",
        **_JOEY, parameters=19_000_000,
    ),
)  # fmt: skip

# HAT's script splits words at hyphens in all pairs, and its reference for sacreBLEU is detokenised
# from tokenised text.
_HAT = [
    (_EN_DE, False, [(25.8, 25.6), (26.9, 26.6), (27.6, 27.1), (27.8, 27.2), (28.4, 27.8)]),
    (_EN_FR, False, [(38.8, 36.0), (40.1, 37.3), (41.1, 38.3), (41.8, 38.9)]),
    (_DE_EN, True, [(33.4, 32.5), (34.5, 33.6), (34.8, 33.9)]),  # IWSLT14
]

#: Outputs that were scored in both ways.
CONVERSIONS: tuple[Conversion, ...] = (
    *(
        Conversion(
            "HAT", languages, tokenised, sacrebleu, _README,
            "https://github.com/mit-han-lab/hardware-aware-transformers", "wang2020hat", lowercase,
        )
        for languages, lowercase, scores in _HAT
        for tokenised, sacrebleu in scores
    ),
    Conversion(  # a reference with other quotation marks, as the authors published it
        "tensor2tensor, a base checkpoint", _EN_DE, 29.02, 27.52, "tensor2tensor, issue 317",
        "https://github.com/tensorflow/tensor2tensor/issues/317", "vaswani2018tensor2tensor",
    ),
    Conversion(
        "Ott et al., big", _EN_DE, 29.29, 28.6, "README in fairseq", _SCALING, "ott2018scaling"
    ),
    Conversion(
        "Ott et al., big", _EN_FR, 43.2, 41.4, "fairseq, issue 2009",
        "https://github.com/facebookresearch/fairseq/issues/2009", "ott2018scaling",
    ),
)  # fmt: skip


def published_scores(
    languages: tuple[str, str] | None = None, test_set: str | None = None, metric: str | None = None
) -> list[PublishedScore]:
    """Return the published scores that match, lowest first; None matches anything."""
    if metric is not None and metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    found = [
        score
        for score in PUBLISHED
        if languages in (None, score.languages)
        and test_set in (None, score.test_set)
        and metric in (None, score.metric)
    ]
    return sorted(found, key=lambda score: score.score)
