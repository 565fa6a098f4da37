"""Marian models of Hugging Face, converted: same ids, logits, attention and translations."""

import io
import json
import pickle
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.interop.test_readme import run_program
from transformer.data.batching import encode_pairs
from transformer.data.parallel import Split
from transformer.inference.translator import Translator
from transformer.interop import (
    CTranslate2Translator,
    from_marian,
    marian,
    to_ctranslate2,
    to_graphs,
    to_marian,
)
from transformer.interop.marian_weights import fold_bias, unfold_bias
from transformer.training.config import TrainingConfig
from transformer.training.trainer import Trainer

REASON = "the originals of Marian models need transformers and sentencepiece: requirements-test.txt"
transformers = pytest.importorskip("transformers", reason=REASON)
sentencepiece = pytest.importorskip("sentencepiece", reason=REASON)

from transformers import MarianConfig, MarianMTModel  # noqa: E402
from transformers import MarianTokenizer as TheirTokenizer  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

ENGLISH = [
    "Where is the train station?",
    "The weather is fine today, and we go to the lake.",
    "A man is reading a book.",
    "Two dogs run on the beach.",
]
GERMAN = [
    "Wo ist der Bahnhof?",
    "Das Wetter ist heute schön, und wir gehen an den See.",
    "Ein Mann liest ein Buch.",
    "Zwei Hunde rennen am Strand.",
]
UNSEEN = ["The dogs run to the lake.", "Where is a man reading?", "Two books?", "A fine train."]
LONGEST = 60


def train_pieces(texts, size):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 3), model_writer=model, vocab_size=size,
        hard_vocab_limit=False, character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    return model.getvalue()


@pytest.fixture(scope="module")
def pieces():
    """Two small SentencePiece models, as bytes."""
    return train_pieces(ENGLISH, 60), train_pieces(GERMAN, 60)


def vocabulary(*models, extra=(), first=()):
    found = {piece: i for i, piece in enumerate(["</s>", "<unk>", *first])}
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        for i in range(3, processor.get_piece_size()):  # its own special pieces come first
            found.setdefault(processor.id_to_piece(i), len(found))
    for piece in (*extra, "<pad>"):
        found.setdefault(piece, len(found))
    return found


@pytest.fixture(scope="module")
def write(pieces):
    """Write a Marian model with random weights to a folder; return it and the folder."""

    def write(folder, extra=(), **changes):
        source, target = pieces
        separate = not changes.get("share_encoder_decoder_embeddings", True)
        # Padding comes last, unless two vocabularies of different sizes must agree on its id.
        first = ["<pad>"] * separate
        ids = vocabulary(source, *[target] * (not separate), extra=extra, first=first)
        folder.mkdir()
        (folder / "source.spm").write_bytes(source)
        (folder / "target.spm").write_bytes(target)
        (folder / "vocab.json").write_text(json.dumps(ids))
        if separate:
            theirs = vocabulary(target, first=first)
            (folder / "target_vocab.json").write_text(json.dumps(theirs))
            changes["decoder_vocab_size"] = len(theirs)
        small = dict(
            vocab_size=len(ids), pad_token_id=ids["<pad>"], decoder_start_token_id=ids["<pad>"],
            d_model=16, encoder_layers=2, decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24,
            encoder_attention_heads=4, decoder_attention_heads=4, activation_function="swish",
            scale_embedding=True, max_position_embeddings=128, init_std=0.3,
        )  # fmt: skip
        torch.manual_seed(0)
        model = MarianMTModel(MarianConfig(**small | changes)).eval()
        with torch.no_grad():  # otherwise biases are 0 and gains 1
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter += 0.2 * torch.randn_like(parameter)
            for side in (model.model.encoder, model.model.decoder):  # 0 for padding, the start
                side.embed_tokens.weight[model.config.pad_token_id].normal_(std=0.3)
            model.final_logits_bias.normal_(std=2.0)
        model.save_pretrained(folder)
        return model, folder

    return write


@pytest.fixture
def make(write, tmp_path):
    return partial(write, tmp_path / "marian")


def their_tokenizer(folder):
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    own = folder / "target_vocab.json"
    if own.exists():
        return TheirTokenizer(*files, target_vocab_file=str(own), separate_vocabs=True)
    return TheirTokenizer(*files)


def random_ids(config):
    """A padded source, a target for them, and the same target for us, who start it otherwise."""
    pad, sizes = config.pad_token_id, (config.vocab_size, config.decoder_vocab_size)
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(3, sizes[0] - 1, (3, 12), generator=generator)
    source[1, 7:], source[2, 3:] = pad, pad
    theirs = torch.randint(3, sizes[1] - 1, (3, 9), generator=generator)
    theirs[:, 0] = config.decoder_start_token_id
    ours = theirs.clone()
    ours[:, 0] = max(sizes)
    return source, theirs, ours


@torch.no_grad()
def assert_equal_logits(translator, original):
    source, theirs, ours = random_ids(original.config)
    mask = source != original.config.pad_token_id
    expected = original(source, attention_mask=mask, decoder_input_ids=theirs).logits
    found = translator.model(source, ours)
    real = torch.arange(expected.size(-1)) != original.config.pad_token_id
    found_real = found[..., : expected.size(-1)][..., real]
    torch.testing.assert_close(found_real, expected[..., real], rtol=1e-5, atol=1e-5)
    # Tokens outside Marian's vocabulary have no share of the probability.
    shares = found.softmax(-1)
    torch.testing.assert_close(shares[..., : len(real)][..., real].sum(-1), torch.ones(3, 9))
    assert translator.model.config.pad_id == original.config.pad_token_id


VARIANTS = [
    dict(),
    dict(encoder_layers=1, decoder_layers=3, activation_function="relu", d_model=24),
    dict(scale_embedding=False, encoder_attention_heads=1, decoder_attention_heads=1),
    dict(d_model=15, encoder_attention_heads=3, decoder_attention_heads=3),  # one more sine
    dict(tie_word_embeddings=False, activation_function="gelu"),
    dict(share_encoder_decoder_embeddings=False, encoder_ffn_dim=40, decoder_ffn_dim=40),
    dict(share_encoder_decoder_embeddings=False, tie_word_embeddings=False),
]


# ------------------------------------------------------------------ translations


@pytest.fixture(scope="module")
def trained(write, tmp_path_factory):
    """A model that has memorised four sentences and is unsure about all others."""
    folder = tmp_path_factory.mktemp("trained") / "marian"
    original, folder = write(
        folder, d_model=32, encoder_ffn_dim=64, decoder_ffn_dim=64, init_std=0.15
    )
    tokenizer, pad = their_tokenizer(folder), original.config.pad_token_id
    batch = tokenizer(ENGLISH, text_target=GERMAN, return_tensors="pt", padding=True)
    labels = batch["labels"].masked_fill(batch["labels"] == pad, -100)
    optimizer = torch.optim.Adam(original.parameters(), lr=5e-3)
    for _ in range(120):
        optimizer.zero_grad()
        original(**batch | {"labels": labels}).loss.backward()
        optimizer.step()
    original.save_pretrained(folder)
    return original, folder, tokenizer


def generate(original, batch, beam_size, **options):
    if beam_size > 1:  # greedy search warns about what it does not use
        options = dict(length_penalty=1.0, early_stopping="never") | options
    return original.generate(
        **batch,
        num_beams=beam_size,
        max_new_tokens=LONGEST,
        renormalize_logits=True,
        bad_words_ids=[[original.config.pad_token_id]],
        forced_eos_token_id=None,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_equal(trained, beam_size):
    original, folder, tokenizer = trained
    batch = tokenizer(ENGLISH, return_tensors="pt", padding=True)
    theirs = tokenizer.batch_decode(
        generate(original, batch, beam_size).sequences, skip_special_tokens=True
    )
    ours = from_marian(folder).translate(
        ENGLISH, beam_size=beam_size, alpha=1.0, max_length=LONGEST, penalty="fairseq"
    )
    assert ours == theirs == GERMAN


# ------------------------------------------------------------------ text and ids

TEXTS = [
    *ENGLISH,
    *GERMAN,
    "",
    "  two   dogs\u00a0read  ",
    "Żółw 漢字 🙂 is fine",  # pieces that the vocabulary lacks
    ">>deu<< Where is the dog?",
    "a < b >> c << d ▁ e",
    "„Zwei Hunde“ … “two” dogs – it’s fine",  # Moses' normalisation would change it
]


@pytest.mark.parametrize("separate", [False, True])
def test_ids_and_texts_are_those_of_their_tokenizer(make, separate):
    extra = () if separate else (">>deu<<", ">>fra<<")
    _, folder = make(share_encoder_decoder_embeddings=not separate, extra=extra)
    translator, theirs = from_marian(folder), their_tokenizer(folder)
    source, target = translator.tokenizer, translator.target_tokenizer
    assert source.language_codes == sorted(extra)
    # Without codes in the vocabulary, theirs makes <unk> of what looks like one.
    texts = [text for text in TEXTS if extra or not text.startswith(">>")]
    for tokenizer, expected in (
        (source, theirs(texts).input_ids),
        (target, theirs(text_target=texts).input_ids),
    ):
        ids = tokenizer.encode_batch(texts)
        assert [[*row, tokenizer.eos_id] for row in ids] == expected
    padded = [[*row, target.eos_id, target.pad_id] for row in target.encode_batch(texts)]
    # Their default is to decode the target with the source's pieces, if the vocabulary is shared.
    expected = theirs.batch_decode(padded, skip_special_tokens=True, use_source_tokenizer=False)
    assert target.decode_batch(padded) == expected
    assert expected[len(ENGLISH) : len(ENGLISH + GERMAN)] == GERMAN


# ------------------------------------------------------------------ the way back


@pytest.mark.parametrize("changes", VARIANTS)
def test_logits_are_equal_and_an_untouched_model_goes_back(make, tmp_path, changes):
    original, folder = make(**changes)
    assert not (there := from_marian(folder)).model.training
    assert_equal_logits(there, original)
    with torch.no_grad():  # as in all OPUS-MT models; ours has no bias for padding
        original.final_logits_bias[0, original.config.pad_token_id] = 0.0
    original.save_pretrained(folder)
    # A folder of ours in between.
    ours = Translator.from_pretrained(from_marian(folder).save_pretrained(tmp_path / "ours"))
    to_marian(ours, tmp_path / "back")
    back = MarianMTModel.from_pretrained(tmp_path / "back").eval()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert theirs(ENGLISH).input_ids == their_tokenizer(folder)(ENGLISH).input_ids
    settings = json.loads((tmp_path / "back" / "generation_config.json").read_text())
    assert settings["max_length"] == 128
    if not original.config.tie_word_embeddings:  # bias and matrix cannot be told apart again
        return assert_equal_logits(ours, back)
    expected, found = original.state_dict(), back.state_dict()
    assert expected.keys() == found.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-4)
    assert back.num_parameters() == original.num_parameters()


def test_a_folded_bias_is_told_from_rounding():
    """Also where a number of a row is almost 0; a training step moves a weight by more."""
    for seed in range(20):
        torch.manual_seed(seed)
        norm, rows, bias = nn.LayerNorm(512), torch.randn(60, 512), torch.randn(60)
        with torch.no_grad():
            norm.weight += 0.2 * torch.randn(512)
            norm.bias += torch.randn(512)
        before, folded = norm.bias.detach().clone(), fold_bias(rows, bias, norm)
        rows = 512**0.5 * (rows / 512**0.5)  # a model of ours stores them divided
        found, shift = unfold_bias(folded, rows, norm)
        torch.testing.assert_close(found, bias, rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(shift, before, rtol=0, atol=1e-5)
        folded[7, 3] += 1e-4
        assert unfold_bias(folded, rows, norm) is None


@pytest.mark.parametrize("separate", [False, True])
def test_fine_tuned_saved_and_exported(make, tmp_path, separate, unchecked):
    _, folder = make(share_encoder_decoder_embeddings=not separate)
    translator = from_marian(folder)
    untouched = translator.translate(UNSEEN, beam_size=1, max_length=20)
    split = Split(ENGLISH, GERMAN)
    pairs = encode_pairs(translator.tokenizer, split, translator.target_tokenizer)
    config = TrainingConfig(max_steps=60, batch_tokens=200, max_length=60, warmup_steps=20)
    Trainer(translator.model, pairs, config, tmp_path / "run").fit()
    tuned = translator.translate(UNSEEN, beam_size=1, max_length=20)
    assert tuned != untouched

    saved = Translator.from_pretrained(translator.save_pretrained(tmp_path / "saved"))
    assert saved.translate(UNSEEN, beam_size=1, max_length=20) == tuned
    to_marian(saved, tmp_path / "marian")
    back = from_marian(tmp_path / "marian")
    assert back.translate(UNSEEN, beam_size=1, max_length=20) == tuned
    to_ctranslate2(saved, tmp_path / "ctranslate2")
    served = CTranslate2Translator(tmp_path / "ctranslate2", threads=1)
    assert served.translate(UNSEEN, beam_size=1, max_length=20) == tuned
    to_graphs(saved, tmp_path / "graphs", "onnx")
    whole = saved.translate(UNSEEN, beam_size=1)
    assert run_program(tmp_path / "graphs", UNSEEN) == whole


# ------------------------------------------------------------------ files


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_pickle_of_tensors_is_read(make):
    original, folder = make()
    (folder / "model.safetensors").unlink()
    torch.save(original.state_dict(), folder / "pytorch_model.bin")  # all names of shared matrices
    assert_equal_logits(from_marian(folder), original)


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


@pytest.mark.parametrize("content", [Bomb(), {"model.shared.weight": 3}, "truncated"])
def test_any_other_pickle_is_refused_unrun(make, monkeypatch, tmp_path, content):
    monkeypatch.chdir(tmp_path)
    _, folder = make()
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save(content, path)
    whole = path.read_bytes()[: 200 if content == "truncated" else None]
    for data in (whole, pickle.dumps(content, protocol=2)):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="pytorch_model.bin does not read"):
            from_marian(folder)
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    "name", ["config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"]
)
def test_a_missing_or_damaged_file_is_named(make, name):
    _, folder = make()
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"marian' does not load: .*{name}"):
        from_marian(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"no Marian model: {name}.* missing"):
        from_marian(folder)


@pytest.mark.parametrize("changes", [
    dict(normalize_before=True), dict(static_position_embeddings=False), dict(model_type="bart"),
    dict(activation_function="tanh"), dict(encoder_attention_heads=2), dict(d_model="16"),
    dict(pad_token_id=None), dict(decoder_start_token_id=1000), dict(dropout=1.5),
    # More than the weights fill:
    dict(vocab_size=10**12), dict(d_model=2**20), dict(max_position_embeddings=10**12),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused_by_name(make, changes):
    _, folder = make()
    rewrite(folder / "config.json", **changes)
    (name,) = changes
    with pytest.raises(ValueError, match=f"does not load: .*({name}|max_length|numbers)"):
        from_marian(folder)


def test_tensors_must_fit_the_settings(make):
    original, folder = make()
    path = folder / "model.safetensors"
    good = {name: tensor.clone() for name, tensor in load_file(path).items()}
    positions = "model.encoder.embed_positions.weight"
    table = original.model.encoder.embed_positions.weight.detach()
    norm = "model.decoder.layers.0.encoder_attn_layer_norm.bias"

    save_file(good | {positions: table.half()}, path)
    assert_equal_logits(from_marian(folder), original)
    for bad, message in (
        (good | {positions: table.flip(1).contiguous()}, f"{positions} must be Marian's sinusoids"),
        ({name: tensor for name, tensor in good.items() if name != norm}, f"weights lack {norm}"),
        (good | {"model.encoder.layernorm_embedding.bias": table[0]}, "no place for: .*embedding"),
        (good | {norm: torch.zeros(17)}, rf"{norm} must be \(16,\) by config.json, got \(17,\)"),
        (good | {"model.shared.weight": torch.zeros(9, 16)}, r"shared.weight must be \(.*\(9, 16"),
    ):
        save_file(bad, path)
        with pytest.raises(ValueError, match=message):
            from_marian(folder)


# ------------------------------------------------------------------ the Hub


def test_only_the_needed_files_are_downloaded(make, monkeypatch):
    original, folder = make()
    asked = []

    def download(name, allow_patterns):
        asked.append({*allow_patterns})
        if "pytorch_model.bin" in allow_patterns:
            torch.save(original.state_dict(), folder / "pytorch_model.bin")
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert_equal_logits(from_marian("owner/opus-mt"), original)
    (folder / "model.safetensors").unlink()
    assert_equal_logits(from_marian("owner/opus-mt"), original)
    wanted = {*marian.NEEDED, marian.TARGET_VOCABULARY, marian.WEIGHTS}
    assert asked == [wanted, wanted, {"pytorch_model.bin"}]


def test_a_model_that_cannot_be_found(monkeypatch, tmp_path):
    def refuse(name, allow_patterns):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    for name, saying in (
        ("a/b", r"'a/b'.*within reach on the .*\(ConnectionError\)"),
        ("nowhere", "'nowhere'.* nor a Hub id"),
        (tmp_path / "a" / "b", "no folder"),
        (tmp_path, "config.json, .*or pytorch_model.bin. missing"),
    ):
        with pytest.raises(FileNotFoundError, match=saying):
            from_marian(name)
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError, match="on the Hugging Face Hub"):
        from_marian("a--b../c")  # no valid name on the Hub
