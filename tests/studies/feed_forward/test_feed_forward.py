"""Networks differ in the feed-forward layer only, and rates are chosen for one task."""

import torch

from transformer_book.studies.feed_forward import study as facts


def test_without_a_feed_forward_layer_it_is_the_network_whose_layer_gives_zero():
    torch.manual_seed(0)
    whole = facts.FactNetwork(facts.Shape(d_ff=8))
    bare = facts.FactNetwork(facts.BARE)
    bare.load_state_dict({n: w for n, w in whole.state_dict().items() if "feed_forward." not in n})
    for layer in whole.layers:
        for weight in layer.feed_forward.parameters():
            torch.nn.init.zeros_(weight)
    pairs, _ = facts.all_pairs("know")
    torch.testing.assert_close(bare(pairs), whole(pairs))


def test_the_best_rate_is_of_one_step_and_one_task():
    def run(task, rate, *means):
        return dict(shape=facts.BARE.name, task=task, rate=rate, shares=[means, means])

    runs = [run("know", 0.001, 0.1, 0.4), run("know", 0.003, 0.2, 0.3), run("move", 0.01, 0.9, 0.8)]
    assert [facts.known(runs, facts.BARE, step).mean() for step in facts.STEPS] == [0.2, 0.4]
    assert facts.known(runs, facts.BARE, task="move").mean() == 0.8
    assert facts.known(runs, facts.BARE, rate=0.003).mean() == 0.3
