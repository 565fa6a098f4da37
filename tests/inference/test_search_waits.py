"""A search reads values a few times per token, and not once per sentence."""

import pytest

from tests.host_reads import HostReads
from transformer.inference.decoding import beam_search, greedy_search

pytestmark = pytest.mark.usefixtures("unchecked")
EOS = 2


@pytest.mark.parametrize(
    "search", [greedy_search, beam_search, lambda m, s: beam_search(m, s, 3, n_best=3)]
)
def test_few_reads_per_token(small_transformer, pad_rows, search):
    model = small_transformer(seed=2).eval()
    rows = [[token % 20 + 3 for token in range(n, 3 * n)] + [EOS] for n in range(1, 12)]
    source = pad_rows(rows)
    steps, decode = [], model.decode_next
    model.decode_next = lambda *given: steps.append(1) or decode(*given)
    with HostReads() as host:
        search(model, source)
    assert len(steps) <= host.reads.total() <= 4 * len(steps) + 4, host.reads
