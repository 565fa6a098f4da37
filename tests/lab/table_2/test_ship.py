"""The model card says what the record says."""

from transformer.lab.table_2.ship import card

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
        dict(split="test", pairs=100, weights=weights, beam_size=beam, alpha=0.6, name="BLEU",
             score=score, signature="tok:13a")
        for weights, beam, score in (("last", 1, 11), ("averaged", 1, 22.2), ("averaged", 4, 33.3))
    ],
}  # fmt: skip


def test_a_card_holds_the_facts_of_the_record_and_the_scores_of_the_shipped_weights():
    text = card("toy-en-de", RECORD)
    assert "| test, 100 pairs | greedy | BLEU 22.20 | `tok:13a` |" in text
    assert "| test, 100 pairs | beam 4, alpha 0.6 | BLEU 33.30 | `tok:13a` |" in text
    assert "11.00" not in text
    for fact in ("9,876", "12,345", "54,321", "0f" * 32, "CC BY 2.0 FR", "some CPU, 1 thread."):
        assert fact in text, fact
