"""The model card says what the record says."""

from ship_model import card

RECORD = {
    "preset": {"name": "toy", "model": {"num_layers": 2, "d_model": 16, "num_heads": 4}},
    "seed": 7,
    "corpus": {
        "languages": ["en", "de"],
        "licence": "CC BY 2.0 FR; somebody",
        "sha256": "0f" * 32,
        "pairs": {"train": 12_345, "test": 100},
    },
    "parameters": 9876,
    "steps": 40,
    "target_tokens": 54_321,
    "minutes": 1.5,
    "averaged": ["step-1", "step-2"],
    "environment": {"hardware": {"device": "cpu", "cpu": "some CPU", "threads": 1}},
    "metrics": [
        {
            "split": "test",
            "pairs": 100,
            "weights": weights,
            "beam_size": beam,
            "alpha": 0.6,
            "name": "BLEU",
            "score": score,
            "signature": "tok:13a",
        }
        for weights, beam, score in [
            ("last", 1, 11.11),
            ("averaged", 1, 22.22),
            ("averaged", 4, 33.33),
        ]
    ],
}


def test_a_card_holds_the_scores_of_the_shipped_weights_and_no_others():
    text = card("toy-en-de", RECORD)
    assert "| test, 100 pairs | greedy | BLEU 22.22 | `tok:13a` |" in text
    assert "| test, 100 pairs | beam 4, alpha 0.6 | BLEU 33.33 | `tok:13a` |" in text
    assert "11.11" not in text


def test_a_card_names_data_size_and_hardware():
    text = card("toy-en-de", RECORD)
    for fact in ("9,876", "12,345", "54,321", "0f" * 32, "CC BY 2.0 FR", "some CPU, 1 thread."):
        assert fact in text, fact
