"""Forked workers encode and translate as the process that made them does, and none hangs.

Each program runs in a process of its own with a limit of time, so that a worker that hangs fails.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 120

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PROGRAM = """
import multiprocessing, warnings
from torch.utils.data import DataLoader
from transformer import Translator

translator = Translator.from_pretrained("tatoeba-en-de")
tokenizer = translator.tokenizer
LINES = ["Where is the train station?", "A man reads.", "No.", "It is late today."] * 100
fork = multiprocessing.get_context("fork")


def loaded(encode_batch):
    loader = DataLoader(LINES, 200, num_workers=2, collate_fn=encode_batch,
                        multiprocessing_context=fork)
    return [ids for batch in loader for ids in batch]


def pooled(function, items):
    with fork.Pool(2) as pool:
        return pool.map(function, items)
"""

ENCODE = """
import io, sentencepiece
from transformer.data.sentencepiece import SentencePieceTokenizer

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(LINES), model_writer=model, vocab_size=40, hard_vocab_limit=False,
    minloglevel=2)
pieces = {"<unk>": 0} | {piece: number for number, piece in enumerate("▁ a e i s".split(), 4)}
marian = SentencePieceTokenizer(model.getvalue(), pieces, 20, pad_id=1, bos_id=2, eos_id=3)
for each in (tokenizer, marian):
    before = loaded(each.encode_batch), pooled(each.encode, LINES)
    expected = each.encode_batch(LINES)  # with all threads: from here on they exist
    texts = each.decode_batch(expected)
    after = loaded(each.encode_batch), pooled(each.encode, LINES)
    assert [*before, *after] == [expected] * 4
    assert pooled(each.decode_batch, [expected, expected]) == [texts, texts]
"""

TRANSLATE = """
import torch

def work(lines):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [translator(lines, beam_size=1), translator.attention(lines[0]).cross.tolist()]
    said = [str(warning.message) for warning in caught]
    return found, said, torch.get_num_threads()

assert torch.get_num_threads() == 2
expected = translator(LINES[:40], beam_size=1)
for (texts, maps), said, threads in pooled(work, [LINES[:40]] * 2):
    assert texts == expected and len(maps) == len(translator.model.decoder) and threads == 1
    assert len(said) == 1 and "torch.set_num_threads(1) in each worker" in said[0], said
assert torch.get_num_threads() == 2
"""


def run(program, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    inherited["OMP_NUM_THREADS"] = "2"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT, env=inherited | environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the workers too
        pytest.fail(f"a worker still waits after {LIMIT} seconds")
    assert output == "the same\n", errors


@pytest.mark.parametrize("chosen", [{}, {"TOKENIZERS_PARALLELISM": "true"}], ids=["unset", "true"])
def test_workers_encode_decode_and_translate_with_one_thread(chosen):
    """With the variable, the tokenizers library does not notice a fork by itself."""
    pytest.importorskip("sentencepiece", reason="its tokenizer is one of two: requirements.txt")
    run(PROGRAM + ENCODE + ("" if chosen else TRANSLATE) + 'print("the same")', **chosen)
