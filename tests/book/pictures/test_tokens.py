"""The trees of chapter 12 are the shipped tokenizer's."""

from drawn import words

from transformer.data.tokenizer import Tokenizer
from transformer_book.pictures.recipe import tokens


def test_the_roots_are_the_tokens_and_every_node_is_a_merge():
    tokenizer = Tokenizer.from_pretrained("tatoeba-en-de")
    for word in tokens.WORDS:
        roots = tokens.trees(word)
        shown = [("▁" + word)[node.start : node.end] for node in roots]
        assert shown == tokenizer.tokens(tokenizer.encode(" " + word))
        nodes = list(roots)
        for node in nodes:
            nodes.extend(node.parts)
            # Ids are three special tokens, 256 bytes, and the merges.
            (number,) = tokenizer.encode((" " + word)[node.start : node.end])
            assert node.rank == max(0, number - 258)
            assert (node.level > 0) == bool(node.parts) == (node.end - node.start > 1)


def test_the_picture_names_each_piece_with_its_merge():
    shown = words(tokens.word_trees().drawn[0])
    assert {"animal: 1 token", "jaywalk: 4 tokens"} <= set(shown)
    for root in (*tokens.trees("animal"), *tokens.trees("jaywalk")):
        assert not root.rank or f"{root.rank:,}" in shown
