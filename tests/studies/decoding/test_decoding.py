"""The recorded search of the explorer chooses what the library's search chooses."""

import pytest
import torch

from transformer.inference.decoding import beam_search
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.decoding.explorer import record_search
from transformer_book.studies.decoding.study import recorded_study, search_all

PENALTIES = [(0.0, "gnmt"), (0.6, "gnmt"), (2.0, "gnmt"), (0.6, "fairseq")]
EOS = 2


def make_model(seed):
    """Random weights, sharp enough that the searches differ, with a liking for the end."""
    torch.manual_seed(seed)
    sizes = dict(d_model=16, d_ff=32, num_heads=2, num_layers=1, dropout=0.5, sharing="none")
    model = Transformer(TransformerConfig(vocab_size=12, **sizes))
    with torch.no_grad():
        weight = model.output_weight.mul_(4.0)
        norm = model.decoder[-1].feed_forward_residual.norm
        norm.bias.copy_(1.5 * weight[EOS] / weight[EOS].square().sum())  # + 1.5 on its logit
    return model


@pytest.mark.parametrize("size", [2, 3, 4])  # one hypothesis is greedy search
@pytest.mark.parametrize("seed", range(4))
def test_one_recorded_search_has_the_winner_under_every_penalty(seed, size):
    model, source = make_model(seed), torch.tensor([[5, 3, 4, EOS]])
    model.train()
    search = record_search(model, source, size, PENALTIES)
    assert model.training and max(search.settled.values()) == len(search.steps)
    for alpha, kind in PENALTIES:
        [best] = beam_search(model, source, size, alpha, penalty=kind)
        found = search.best(alpha, kind)
        assert [*found.tokens] == [*best.tokens, EOS]
        assert found.score(alpha, kind) == pytest.approx(best.score, abs=1e-4)
        # Nothing that ended later was needed.
        assert len(found.tokens) <= search.settled[alpha, kind]


def test_the_record_is_of_the_shipped_weights(tatoeba=slice(0, 2000, 250)):
    from transformer.data.corpora import load_corpus

    source = load_corpus("tatoeba-en-de").test.source[tatoeba]
    study, translator = recorded_study(), Translator.from_pretrained("tatoeba-en-de")
    for size, alpha in ((1, 0.0), (4, 0.6), (16, 0.0)):
        again = [text for text, _, _ in search_all(translator, source, size, alpha)]
        same = sum(map(str.__eq__, again, study.translations(size, alpha)[tatoeba]))
        assert same >= 7, "another processor may break one tie"
