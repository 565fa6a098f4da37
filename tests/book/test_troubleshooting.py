"""The answers of the troubleshooting page: each question has a test that is named after it."""

import hashlib
import io
import json
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from typer.testing import CliRunner

from transformer import Transformer, TransformerConfig, Translator
from transformer.book.anchors import anchors
from transformer.cli import app
from transformer.data.batching import Batch, EncodedPairs, Sentences, TokenBatches
from transformer.data.corpora import load_corpus, multi30k
from transformer.data.corpora.download import DownloadError, download
from transformer.inference.device import choose_device
from transformer.inference.metrics import bleu
from transformer.inference.pretrained import SHIPPED_FOLDER, shipped_names
from transformer.lab.table_2.recorded import recorded_runs
from transformer.lab.toys.properties import leak_gap, padding_gap, shift_right
from transformer.model.attention import MultiHeadAttention, masked_softmax
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer.recipes.presets import get_preset
from transformer.training.config import TrainingConfig
from transformer.training.finite import NonFiniteLossError, require_finite
from transformer.training.loss import smoothed_cross_entropy, smoothing_weights
from transformer.training.trainer import Trainer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "troubleshooting.md"
TEXT = PAGE.read_text(encoding="utf-8")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUESTIONS = re.findall(r"^\((ask-[\w-]+)\)=\n### \S", TEXT, re.M)


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def tags(cell):
    return cell["metadata"].get("tags", [])


def tiny(**changes):
    torch.manual_seed(0)
    sizes = dict(d_model=16, d_ff=24, num_heads=2, num_layers=1, dropout=0.0)
    return Transformer(TransformerConfig.from_dict(dict(vocab_size=30) | sizes | changes)).eval()


@pytest.fixture(scope="module")
def batch():
    torch.manual_seed(1)
    source, labels = torch.randint(3, 30, (3, 7)), torch.randint(3, 30, (3, 6))
    source[1:, 4:], labels[2:, 3:] = 0, 0
    return Batch(source, shift_right(labels), labels, 15, 15)


# --- the page itself ------------------------------------------------------------------------


def test_each_question_has_a_test_and_each_test_a_question():
    questions = {"test_" + name.replace("-", "_") for name in QUESTIONS}
    assert questions == {name for name in globals() if name.startswith("test_ask_")}
    assert len(QUESTIONS) == len(set(QUESTIONS)) == TEXT.count("\n### ") >= 16


PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_the_code_on_the_page_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON[number], f"block {number}", "exec"), {})


def test_commands_on_the_page_exist():
    """The options too; they are not run."""
    lines = re.sub(r"\\\n", " ", "".join(re.findall(r"^```bash\n(.*?)^```", TEXT, re.M | re.S)))
    commands = re.findall(r"^(?:transformer|python -m transformer\.cli) (\w+)(.*)", lines, re.M)
    assert len(commands) >= 2
    for command, rest in commands:
        usage = CliRunner().invoke(app, [command, "--help"]).output
        assert usage.startswith("Usage") or "Usage" in usage
        assert all(option in usage for option in re.findall(r" (--[\w-]+)", rest))
        for field in re.findall(r"--set (\w+)=", rest):
            assert hasattr(TrainingConfig(), field)


def test_links_of_the_page_lead_somewhere():
    links = re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", TEXT)
    assert len(links) >= 10
    for name, anchor in links:
        page = (PAGE.parent / name).resolve() if name else PAGE
        assert page.is_file() and (not anchor or anchor in anchors(page)), (name, anchor)


# --- installing -----------------------------------------------------------------------------


def test_ask_install():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11" and sys.version_info >= (3, 11)
    assert all(re.fullmatch(r"[\w-]+>=[\d.]+", line) for line in project["dependencies"])
    assert "torch>=2.4" in project["dependencies"]
    assert re.search(r"^torch==", (ROOT / "requirements.txt").read_text(), re.M)


def test_ask_pip_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "transformer-book"
    assert f"git+{project['urls']['Repository']}" in TEXT
    assert Transformer.__module__.split(".")[0] == Translator.__module__.split(".")[0]
    assert Transformer.__module__.startswith("transformer.")


def test_ask_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"transformer": "transformer.cli:main"}
    run = subprocess.run(
        [sys.executable, "-m", "transformer.cli", "--version"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0 and run.stdout.startswith("transformer-book "), run.stderr


def test_ask_torchtext():
    given_up = r"^\s*(?:import|from) (torchtext|torchdata|spacy)\b"
    files = [*(ROOT / "transformer").rglob("*.py"), *NOTEBOOKS]
    assert not [f.name for f in files if re.search(given_up, f.read_text(), re.M)]
    needed = (ROOT / "pyproject.toml").read_text() + (ROOT / "requirements.txt").read_text()
    assert not re.search(r"torchtext|torchdata|spacy", needed) and '"tokenizers>=' in needed


def test_ask_colab():
    cells = ["".join(code_cells(path)[0]["source"]) for path in NOTEBOOKS]
    first = {re.sub(r"transformer-book\[[\w,]+\]", "transformer-book", cell) for cell in cells}
    assert len(first) == 1, "the chapters begin in different ways"
    assert all("hide-cell" in tags(code_cells(path)[0]) for path in NOTEBOOKS)
    # Where the package is there, nothing but the search for it is run.
    cell = first.pop().replace("%pip", "raise AssertionError #")
    exec(cell, {})
    exec(cell, {})


@pytest.fixture(scope="module")
def shipped():
    """The corpus and the model that come with the package, loaded where there is no network."""

    def refuse(*_, **__):
        raise OSError("no network in this test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return load_corpus("tatoeba-en-de"), Translator.from_pretrained("tatoeba-en-de").model


class Answer(io.BytesIO):
    """What a host answers."""

    length = None


def test_ask_offline(shipped, monkeypatch, tmp_path):
    corpus, model = shipped
    assert len(corpus.train) > 100_000 and model.num_parameters() > 5e6
    assert len({url.split("/")[2] for url in multi30k.SOURCES}) >= 2
    files = {f"{stem}.{side}.gz" for stem in multi30k.SPLITS.values() for side in ("en", "de")}
    assert files <= multi30k.SHA256.keys()

    def host(url, timeout):
        if "dead" in url:
            raise OSError("nobody there")
        return Answer(b"right" if "good" in url else b"wrong")

    monkeypatch.setattr("transformer.data.corpora.download.urlopen", host)
    here, expected = tmp_path / "file", hashlib.sha256(b"right").hexdigest()
    with pytest.raises(DownloadError, match="nobody there.*wrong SHA-256"):
        download(["http://dead/file", "http://bad/file"], here, expected)
    assert not list(tmp_path.iterdir())
    download(["http://dead/file", "http://bad/file", "http://good/file"], here, expected)
    assert here.read_bytes() == b"right" and list(tmp_path.iterdir()) == [here]


def test_ask_cuda():
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else choose_device().type)
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="device must be one of this machine"):
        choose_device("cuda:99")
    refused = CliRunner().invoke(app, ["translate", "--device", "cuda:99", "Hello."])
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1


# --- the model ------------------------------------------------------------------------------


def test_ask_norm(batch):
    """The default is LayerNorm(x + Sublayer(x)): its outputs have mean 0 and variance 1."""
    outputs = {norm: tiny(norm=norm, final_norm=False).encode(batch.source) for norm in
               ("post", "pre")}  # fmt: skip
    assert torch.equal(outputs["post"], tiny(final_norm=False).encode(batch.source))
    spread = {norm: x.var(dim=-1, correction=0) for norm, x in outputs.items()}
    assert torch.allclose(spread["post"], torch.ones(3, 7), atol=1e-3)
    assert not torch.allclose(spread["pre"], torch.ones(3, 7), atol=0.1)


def test_ask_hooks(batch):
    model, shapes = tiny().train(), []
    model.encoder[0].register_forward_hook(lambda _, inputs, output: shapes.append(output.shape))
    for model.skip_padding in (True, False):
        model(batch.source, batch.target_input)
    model.eval()(batch.source, batch.target_input)
    whole = (*batch.source.shape, 16)
    assert shapes == [(batch.num_source_tokens, 16), whole, whole]


def test_ask_pad_queries(batch):
    assert padding_gap(tiny(), batch) < 1e-5
    # As a query, too, with minus infinity and a plain softmax, over two rounds of attention.
    x, real = torch.randn(5, 4), torch.tensor([True, True, True, False, False])
    visible = real[:, None] & real[None, :]
    once = (x @ x.T).masked_fill(~visible, -torch.inf).softmax(-1) @ x
    twice = (once @ once.T).masked_fill(~visible, -torch.inf).softmax(-1) @ once
    assert once[:3].isfinite().all() and once[3:].isnan().all() and twice.isnan().all()


def test_ask_mask_sense():
    x, mask = torch.randn(1, 5, 8), causal_mask(5)
    ours = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert torch.allclose(ours, F.scaled_dot_product_attention(x, x, x, is_causal=True))
    theirs = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    _, weights = theirs(x, x, x, attn_mask=~mask)
    assert (weights[0][~mask] == 0).all() and (weights[0][mask] > 0).all()


def test_ask_mask_constant():
    scores, mask = torch.tensor([[-20_000.0, 5.0]]), torch.tensor([[True, False]])
    by_constant = scores.masked_fill(~mask, -1e4).softmax(-1)
    assert by_constant[0, 1] == 1  # the hidden one wins
    assert masked_softmax(scores, mask).tolist() == [[1.0, 0.0]]
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(2).half().masked_fill(torch.tensor([True, False]), -1e9)
    assert masked_softmax(scores, torch.zeros(1, 2, dtype=torch.bool)).tolist() == [[0.0, 0.0]]


def test_ask_shapes():
    attention, maps = MultiHeadAttention(d_model=12, num_heads=2, d_k=5), []
    assert attention(torch.randn(3, 4, 12), torch.randn(3, 6, 12), maps=maps).shape == (3, 4, 12)
    assert attention.project_query(torch.randn(3, 4, 12)).shape == (3, 2, 4, 5)
    (weights,) = maps
    assert weights.shape == (3, 2, 4, 6) and torch.allclose(weights.sum(-1), torch.ones(3, 2, 4))
    assert TransformerConfig.table3("B", 1).d_k * 8 != TransformerConfig.table3("B", 1).d_model


def test_ask_positions():
    paper, code = sinusoidal_table(50, 64), sinusoidal_table(50, 64, "t2t")
    columns = torch.cat([torch.arange(0, 64, 2), torch.arange(1, 64, 2)])
    difference = (paper[:, columns] - code).abs()
    assert difference[:, 0].max() == 0 and difference.max() > 0.1  # other wavelengths
    assert tiny(d_model=15, num_heads=3).config.d_model == 15
    with pytest.raises(ValueError, match="divisible"):
        tiny(d_model=15)
    tiny(d_model=15, d_k=4, d_v=4)


# --- training -------------------------------------------------------------------------------


def test_ask_leak(batch):
    assert leak_gap(tiny(), batch) == 0
    assert leak_gap(tiny(), batch, shift=lambda labels: labels) > 1e-3


def test_ask_smoothing():
    best = smoothing_weights(0.1, 37_000)
    entropy = (
        -best[0] * torch.tensor(best[0]).log() - 36_999 * best[1] * torch.tensor(best[1]).log()
    )
    assert float(entropy) == pytest.approx(1.38, abs=0.005) and "1.38 nats" in TEXT
    logits, labels = 1000 * torch.randn(6, 50), torch.randint(1, 50, (6,))
    loss = smoothed_cross_entropy(logits, labels, epsilon=0.1)
    assert loss.isfinite() and logits.softmax(-1).log().isinf().any()
    expected = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    assert torch.allclose(loss, expected)


def test_ask_not_finite():
    model = tiny()
    require_finite([1.0, 2.0], 2, model, "none")
    with pytest.raises(NonFiniteLossError, match="step 2.*the last good"):
        require_finite([1.0, float("nan")], 2, model, "the last good one is step 1")
    for field in ("learning_rate_factor", "warmup_steps", "clip_norm", "precision"):
        assert hasattr(TrainingConfig(), field)


def test_ask_memory(tmp_path, batch):
    """Less memory, the same gradients."""
    gradients = []
    for recompute in (False, True):
        model = tiny().train()
        model.checkpoint_activations = recompute
        model(batch.source, batch.target_input).square().mean().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(map(torch.allclose, *gradients))
    plain = get_preset("multi30k-tiny").training
    assert plain.batch_tokens * plain.accumulate == 2048 * 4  # as in the command on the page
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="needs a GPU"):
            trainer(tmp_path, precision="fp16")


def test_ask_time():
    assert "tatoeba-en-de" in shipped_names()
    for run in recorded_runs().values():
        assert run["minutes"] > 0 and run["environment"]["hardware"]
    assert "results.md" in TEXT and (PAGE.parent / "results.md").is_file()


def trainer(folder, max_steps=6, seed=0, **changes):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, 30, (40, 4), generator=generator, dtype=torch.int32)
    ids[:, -1] = 2
    sentences = Sentences(ids.flatten().numpy(), torch.arange(0, 161, 4).numpy())
    options = dict(max_steps=max_steps, batch_tokens=40, warmup_steps=4, save_every=3, seed=seed)
    config = TrainingConfig(**options | changes)
    batches = TokenBatches(EncodedPairs(sentences, sentences), config.batch_tokens, seed)
    return Trainer(tiny(dropout=0.1), batches, config, folder, progress=False)


def test_ask_resume(tmp_path):
    whole = trainer(tmp_path / "whole")
    assert whole.fit()
    assert trainer(tmp_path / "twice", max_steps=3).fit()
    again = trainer(tmp_path / "twice")
    assert again.step == 3 and again.fit()
    for ours, theirs in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_ask_other_configuration(tmp_path):
    assert trainer(tmp_path, max_steps=3).fit()
    assert trainer(tmp_path, max_steps=4, log_every=7, keep_last=2).step == 3
    with pytest.raises(ValueError, match="another configuration .warmup_steps: 4 there, 5 here"):
        trainer(tmp_path, warmup_steps=5)
    assert "holds a run of another configuration" in TEXT


def test_ask_not_as_saved(tmp_path):
    folder = shutil.copytree(SHIPPED_FOLDER / "tatoeba-en-de", tmp_path / "mine")
    config = folder / "config.json"
    config.write_text(config.read_text().replace("1e-06", "1e-05"))
    with pytest.raises(ValueError, match=r"config\.json is not as it was saved"):
        Translator.from_pretrained(folder)
    (folder / "checksums.json").unlink()
    assert Translator.from_pretrained(folder).model.config.layer_norm_eps == 1e-5
    assert "is not as it was saved" in TEXT and "remove\n`checksums.json`" in TEXT


def test_ask_bleu():
    outputs = ["It's raining again, isn't it?", "The low-cost train left at nine."]
    references = ["it's raining again, is it not?", "The low-cost train left at ten."]
    scores = [bleu(outputs, references), bleu(outputs, references, lowercase=True),
              bleu(outputs, references, tokenize="none")]  # fmt: skip
    values = sorted(score.score for score in scores)
    assert min(b - a for a, b in zip(values, values[1:], strict=False)) > 1
    assert len({score.signature for score in scores}) == 3
    assert all(score.signature in str(score) for score in scores)


def test_ask_translation(shipped):
    corpus, model = shipped
    assert round(model.num_parameters() / 1e6) == 6 and "6 million parameters" in TEXT
    lengths = sorted(len(sentence.split()) for sentence in corpus.train.source[:2000])
    assert lengths[1000] <= 10  # short and everyday


# --- the book -------------------------------------------------------------------------------


def test_ask_output_differs():
    """Timings and curves are left out of the comparison, and something is asserted instead."""
    cells = [cell for path in NOTEBOOKS for cell in code_cells(path)]
    free = [cell for cell in cells if "nbval-ignore-output" in tags(cell)]
    asserted = [cell for cell in cells if re.search(r"^\s*assert ", "".join(cell["source"]), re.M)]
    assert len(free) >= 10 and len(asserted) >= 100


def test_ask_solutions():
    for path in NOTEBOOKS:
        solutions = [cell for cell in code_cells(path) if "solution" in tags(cell)]
        assert len(solutions) >= 3, path.name
        assert all("hide-cell" in tags(cell) and cell["outputs"] for cell in solutions), path.name


def test_ask_too_large():
    lengths = [
        len([line for line in "".join(cell["source"]).splitlines() if line.strip()])
        for path in NOTEBOOKS for cell in code_cells(path)
    ]  # fmt: skip
    assert max(lengths) <= 20 and sorted(lengths)[len(lengths) // 2] <= 12


def test_ask_jupyter_book():
    assert re.search(r"^jupyter-book==1\.", (ROOT / "requirements.txt").read_text(), re.M)
    assert re.search(r"jupyter-book build \. -W -n", (ROOT / "Makefile").read_text())
    try:
        assert metadata.version("jupyter-book").startswith("1.")
    except metadata.PackageNotFoundError:
        pytest.skip("jupyter-book is not installed here")
