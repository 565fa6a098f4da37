"""Published figures that this book's own are set beside, each with its source and its metric.

Two BLEU scores can be compared only if they were counted the same way on the same sentences. So
each figure names both, and whoever prints it keeps the kinds apart.

Paper: section 6.1, Table 2
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One way to count.

    Args:
        title: a few words for the head of a table.
        meaning: how it is counted and what it may be compared with, in whole sentences.

    Paper: section 6.1, Table 2
    """

    title: str
    meaning: str


#: The ways to count, by the key that scores carry.
METRICS = {
    "tokenised": Metric(
        "BLEU on Moses tokens",
        "BLEU on Moses tokens, with case. German compounds are split at their hyphens, as the "
        "script in the paper's published code does; the paper itself does not say how it counted. "
        "Comparable systems score about half a point lower in sacreBLEU (English-German) and two "
        "to three points lower (English-French).",
    ),
    "sacrebleu": Metric(
        "sacreBLEU",
        "BLEU on plain text with its case, cut into words by sacreBLEU itself (13a). It can be "
        "repeated by anybody, and it is another number than BLEU on tokenised text.",
    ),
    "sacrebleu-lowercase": Metric(
        "sacreBLEU, lower-cased",
        "BLEU on plain text without regard to case, cut into words by sacreBLEU itself (13a).",
    ),
    "moses-lowercase": Metric(
        "BLEU on lower-cased Moses tokens",
        "BLEU on lower-cased Moses tokens, translation and reference alike. Without case the task "
        "is easier, so do not compare it with sacreBLEU on cased text.",
    ),
    "spacy-lowercase": Metric(
        "BLEU on lower-cased spaCy words",
        "BLEU on lower-cased words as spaCy cuts them, with a vocabulary of whole words: what is "
        "rare in training is unknown. Do not compare it with BLEU on any other tokens.",
    ),
}


@dataclass(frozen=True)
class PublishedScore:
    """A score that somebody else published.

    Args:
        system: what was scored.
        languages: codes of source and target.
        test_set: name of the test set, see :func:`~transformer.lab.table_2.summary.test_set`.
        score: 0 to 100, with the digits that were printed.
        metric: how it was counted, a key of ``METRICS``.
        trained_on: the training text, in a word.
        source: where the figure stands, in words.
        url: where to read it.
        key: its entry in the bibliography of the book, if it has one.
        architecture: "transformer", "recurrent", "convolutional" or "other".
        parameters: how many, where that is known.
        training_flops: training cost as Table 2 counts it: hardware time, not arithmetic.

    Paper: section 6.1, Table 2
    """

    system: str
    languages: tuple[str, str]
    test_set: str
    score: float
    metric: str
    trained_on: str
    source: str
    url: str
    key: str | None = None
    architecture: str = "transformer"
    parameters: int | None = None
    training_flops: float | None = None

    @property
    def is_ensemble(self) -> bool:
        """Whether several models translated together.

        Paper: Table 2
        """
        return "ensemble" in self.system


@dataclass(frozen=True)
class Conversion:
    """One output, counted both ways by the same people.

    Args:
        system: whose output.
        languages: codes of source and target.
        tokenised: as "tokenised" in ``METRICS``; without case where ``lowercase``.
        sacrebleu: as "sacrebleu" in ``METRICS``; without case where ``lowercase``.
        source: where the figures stand, in words.
        url: where to read them.
        key: its entry in the bibliography of the book, if it has one.
        lowercase: whether case was ignored.
    """

    system: str
    languages: tuple[str, str]
    tokenised: float
    sacrebleu: float
    source: str
    url: str
    key: str | None = None
    lowercase: bool = False


_EN_DE, _EN_FR, _DE_EN = ("en", "de"), ("en", "fr"), ("de", "en")
_ATTENTION = dict(url="https://arxiv.org/abs/1706.03762", key="vaswani2017attention")
_TUTORIALS = "https://github.com/bentrevett/pytorch-seq2seq"
_JOEY: dict[str, Any] = dict(
    source="its benchmarks",
    url="https://github.com/joeynmt/joeynmt/blob/main/docs/source/benchmarks.rst",
    key="kreutzer2019joey",
)


def _table_2() -> list[PublishedScore]:
    """Table 2 of the paper, whole. The figures of other systems are the paper's quotations."""
    rows = [
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
    scores = []
    for system, architecture, parameters, german, german_flops, french, french_flops in rows:
        for pair, score, flops in ((_EN_DE, german, german_flops), (_EN_FR, french, french_flops)):
            if score is not None:
                scores.append(
                    PublishedScore(
                        system, pair, "newstest2014", score, "tokenised", "WMT14", "Table 2",
                        **_ATTENTION, architecture=architecture, parameters=parameters,
                        training_flops=flops,
                    )
                )  # fmt: skip
    return scores


def _newstest2014() -> list[PublishedScore]:
    """The same test set, counted by sacreBLEU."""
    scaling: dict[str, Any] = dict(
        source="README in fairseq",
        url="https://github.com/facebookresearch/fairseq/tree/main/examples/scaling_nmt",
        key="ott2018scaling",
    )
    return [
        PublishedScore(
            "Transformer, base size, Joey NMT", _EN_DE, "newstest2014", 24.38, "sacrebleu",
            "WMT14", **_JOEY, parameters=60_500_000,
        ),
        PublishedScore(
            "Transformer, big size, Ott et al.", _EN_DE, "newstest2014", 28.6, "sacrebleu",
            "WMT16", **scaling,
        ),
    ]  # fmt: skip


def _multi30k() -> list[PublishedScore]:
    rnn: dict[str, Any] = dict(
        source="README of its repository",
        url="https://github.com/lium-lst/wmt17-mmt",
        key="caglayan2017lium",
        architecture="recurrent",
    )
    system = "GRU with attention, LIUM-CVC (one run)"
    scores = [
        # The number of parameters is counted from the configuration, as this package counts.
        PublishedScore(
            "Transformer-Tiny, Wu et al.", _EN_DE, "multi30k-test2016", 41.02, "moses-lowercase",
            "Multi30K", "README of its repository",
            "https://github.com/LividWo/Revisit-MMT/blob/master/README-baseline.md",
            "wu2021good", parameters=2_568_192,
        )
    ]  # fmt: skip
    for pair, year, score in (
        (_EN_DE, 2016, 39.00),
        (_EN_DE, 2017, 31.25),
        (_EN_FR, 2016, 59.02),
        (_EN_FR, 2017, 51.93),
    ):
        name = f"multi30k-test{year}"
        scores.append(
            PublishedScore(system, pair, name, score, "moses-lowercase", "Multi30K", **rnn)
        )
    for system, architecture, parameters, score in (
        ("LSTM, no attention, tutorial", "recurrent", 13_900_000, 13.76),
        ("GRU, no attention, tutorial", "recurrent", 14_200_000, 20.61),
        ("GRU with attention, tutorial", "recurrent", 20_500_000, 28.30),
        ("ConvS2S, tutorial", "convolutional", 37_400_000, 34.14),
        ("Transformer, tutorial", "transformer", 9_040_000, 36.52),
    ):
        scores.append(
            PublishedScore(
                system, _DE_EN, "multi30k-test2016", score, "spacy-lowercase", "Multi30K",
                "notebooks of pytorch-seq2seq", _TUTORIALS,
                architecture=architecture, parameters=parameters,
            )
        )  # fmt: skip
    return scores


def _iwslt14() -> list[PublishedScore]:
    common = ("sacrebleu-lowercase", "IWSLT14")
    return [
        PublishedScore(
            "RNN, Joey NMT", _DE_EN, "iwslt14-test", 30.74, *common, **_JOEY,
            architecture="recurrent", parameters=61_000_000,
        ),
        PublishedScore(
            "Transformer, Joey NMT", _DE_EN, "iwslt14-test", 33.73, *common, **_JOEY,
            parameters=19_000_000,
        ),
    ]  # fmt: skip


def _conversions() -> list[Conversion]:
    hat: dict[str, Any] = dict(
        source="README of its repository",
        url="https://github.com/mit-han-lab/hardware-aware-transformers",
        key="wang2020hat",
    )
    pairs = {
        _EN_DE: [(25.8, 25.6), (26.9, 26.6), (27.6, 27.1), (27.8, 27.2), (28.4, 27.8)],
        _EN_FR: [(38.8, 36.0), (40.1, 37.3), (41.1, 38.3), (41.8, 38.9)],
    }
    found = [
        Conversion("HAT", languages, tokenised, sacrebleu, **hat)
        for languages, both in pairs.items()
        for tokenised, sacrebleu in both
    ]
    found += [
        Conversion("HAT", _DE_EN, tokenised, sacrebleu, **hat, lowercase=True)
        for tokenised, sacrebleu in ((33.4, 32.5), (34.5, 33.6), (34.8, 33.9))  # IWSLT14
    ]
    scaling: dict[str, Any] = dict(system="Ott et al., big", key="ott2018scaling")
    readme = "https://github.com/facebookresearch/fairseq/tree/main/examples/scaling_nmt"
    thread = "https://github.com/facebookresearch/fairseq/issues/2009"
    found += [
        Conversion(
            languages=_EN_DE, tokenised=29.29, sacrebleu=28.6, source="README in fairseq",
            url=readme, **scaling,
        ),
        Conversion(
            languages=_EN_FR, tokenised=43.2, sacrebleu=41.4, source="fairseq, issue 2009",
            url=thread, **scaling,
        ),
    ]  # fmt: skip
    return found


#: Every published score that the book compares with.
PUBLISHED: tuple[PublishedScore, ...] = (
    *_table_2(),
    *_newstest2014(),
    *_multi30k(),
    *_iwslt14(),
)

#: Outputs that were counted both ways.
CONVERSIONS: tuple[Conversion, ...] = tuple(_conversions())


def published_scores(
    languages: tuple[str, str] | None = None,
    test_set: str | None = None,
    metric: str | None = None,
) -> list[PublishedScore]:
    """Return the published scores that fit, the lowest first.

    Args:
        languages: codes of source and target; None for any.
        test_set: name of the test set; None for any.
        metric: a key of ``METRICS``; None for any.

    Raises:
        ValueError: if there is no such metric.

    Paper: section 6.1, Table 2
    """
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
