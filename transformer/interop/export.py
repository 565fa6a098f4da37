"""The parts that all exports share: a check of the translator, and the README of the folder.

The README shows a program that translates with the other library and the tokenizer's files in the
folder, without this package.
"""

from pathlib import Path
from string import Template
from typing import Literal

from transformer.data.sentencepiece import (
    TARGET_VOCABULARY,
    VOCABULARY,
    SentencePieceTokenizer,
)
from transformer.data.tokenizer import Tokenizer
from transformer.inference.model_card import read_card
from transformer.inference.stepwise import EXTRA_LENGTH
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.saving.files import write_atomically

Form = Literal["ctranslate2", "marian", "onnx", "torch"]
Tokenizers = tuple[Tokenizer, Tokenizer] | tuple[SentencePieceTokenizer, SentencePieceTokenizer]

README = "README.md"
#: Exponent of the length penalty ``|Y|^alpha`` that ranks sentences of usual length much as our
#: default does, which is the paper's penalty with alpha = 0.6.
LENGTH_PENALTY = 0.4

_TITLES: dict[Form, str] = dict(
    ctranslate2="A translation model for CTranslate2",
    marian="A translation model for Hugging Face's MarianMTModel",
    onnx="A translation model as ONNX graphs",
    torch="A translation model as graphs of torch.export",
)
#: The library that loads the weights, by its name in model cards.
_LIBRARIES: dict[Form, str] = dict(
    ctranslate2="ctranslate2", marian="transformers", onnx="onnx", torch="pytorch"
)

# ------------------------------------------------------------------ parts of the programs

_MARIAN = """\
from transformers import AutoTokenizer, MarianMTModel

folder = "."  # where this file is
tokenizer = AutoTokenizer.from_pretrained(folder)
model = MarianMTModel.from_pretrained(folder)


def translate(text):
    batch = tokenizer([text], return_tensors="pt")
    return tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)[0]
"""

_ENGINES: dict[Form, str] = dict(
    ctranslate2="""\
engine = ctranslate2.Translator(folder)
""",
    onnx="""\
encoder = onnxruntime.InferenceSession(f"{folder}/encoder.onnx")
step = onnxruntime.InferenceSession(f"{folder}/step.onnx")
""",
    torch="""\
encoder = torch.export.load(f"{folder}/encoder.pt2").module()
step = torch.export.load(f"{folder}/step.pt2").module()
""",
)

_BYTE_LEVEL = """\
tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.encode_special_tokens = True  # "<eos>" in a sentence is text


def encode(text):
    encoding = tokenizer.encode(" ".join(text.split()))
    return encoding.$kind  # they end with <eos>


"""
_BYTE_LEVEL_DECODE = dict(
    tokens="""\
def decode(tokens):
    return tokenizer.decode([tokenizer.token_to_id(token) for token in tokens]).strip()


""",
    ids="""\
def decode(ids):
    return tokenizer.decode(ids).strip()


""",
)

_SENTENCEPIECE = """\
source = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/target.spm")
"""
_SPLIT = """\
    pieces = source.encode(text, out_type=str)
"""
_SPLIT_CODE = """\
    code, end, text = text.rpartition("<<")
    pieces = [code + end, *source.encode(text, out_type=str)]
"""
_SENTENCEPIECE_CODING = dict(
    tokens="""\


def encode(text):
$split    return [*pieces, "</s>"]


def decode(tokens):
    return target.decode([token for token in tokens if token != "<unk>"]).strip()


""",
    ids="""\
with open(f"{folder}/$source_file", encoding="utf-8") as file:
    source_ids = json.load(file)
with open(f"{folder}/$target_file", encoding="utf-8") as file:
    target_pieces = {i: piece for piece, i in json.load(file).items()}


def encode(text):
$split    return [source_ids.get(piece, source_ids["<unk>"]) for piece in [*pieces, "</s>"]]


def decode(ids):
    pieces = [target_pieces[i] for i in ids]
    return target.decode([piece for piece in pieces if piece not in ("</s>", "<unk>")]).strip()


""",
)

_TRANSLATE: dict[Form, str] = dict(
    ctranslate2="""\
def translate(text):
    found = engine.translate_batch([encode(text)], beam_size=4, length_penalty=$penalty)
    return decode(found[0].hypotheses[0])
""",
    onnx="""\
def translate(text):  # by greedy search
    source = np.array([encode(text)])
    cross_key, cross_value = encoder.run(None, {"source": source})
    given = {"source": source, "cross_key": cross_key, "cross_value": cross_value}
    key, value = (each[:, :, :, :0] for each in (cross_key, cross_value))
    token, found = $bos, []
    while token != $eos and len(found) < min(source.shape[1] + $extra, $longest):
        past = {"past_key": key, "past_value": value}
        logits, key, value = step.run(None, {"token": np.array([token]), **given, **past})
        logits[:, [$pad, $bos]] = -np.inf
        token = int(logits.argmax())
        found.append(token)
    return decode(found)
""",
    torch="""\
@torch.inference_mode()
def translate(text):  # by greedy search
    source = torch.tensor([encode(text)])
    cross = encoder(source)
    past = [torch.zeros(*each.shape[:3], 0, each.shape[4]) for each in cross]
    token, found = $bos, []
    while token != $eos and len(found) < min(source.shape[1] + $extra, $longest):
        logits, *past = step(torch.tensor([token]), source, *cross, *past)
        logits[:, [$pad, $bos]] = -torch.inf
        token = int(logits.argmax())
        found.append(token)
    return decode(found)
""",
)

# ------------------------------------------------------------------


def checked(translator: Translator) -> tuple[Transformer, Tokenizers]:
    """Return the model and the tokenizers of source and target, if they can be exported.

    Raises:
        ValueError: if the model is not a Transformer, or the tokenizers are neither one joint
            :class:`~transformer.data.tokenizer.Tokenizer` nor two of
            :class:`~transformer.data.sentencepiece.SentencePieceTokenizer`.
    """
    model, source, target = translator.model, translator.tokenizer, translator.target_tokenizer
    if not isinstance(model, Transformer):
        raise ValueError(f"model must be a Transformer, got {type(model).__name__}")
    if isinstance(source, Tokenizer) and target is source:
        return model, (source, source)
    if isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer):
        return model, (source, target)
    raise ValueError(
        "translator must have one joint tokenizer of transformer.data.tokenizer, or two of "
        "transformer.data.sentencepiece"
    )


def write_readme(translator: Translator, folder: Path, form: Form) -> None:
    """Write a README that shows how to use an export, with the model card if there is one.

    Args:
        translator: the translator that was exported.
        folder: folder of the export.
        form: form of the export.
    """
    tokenizer = translator.tokenizer
    text = f"# {_TITLES[form]}\n\nTranslate with it in Python:\n\n```python\n"
    text += f"{program(translator, form)}```\n\n"
    text += f"Needed packages: {', '.join(f'`{name}`' for name in packages(translator, form))}."
    if isinstance(tokenizer, SentencePieceTokenizer) and tokenizer.language_codes:
        text += (
            " A text begins with the code of its target language, such as "
            f"`{tokenizer.language_codes[0]}`."
        )
    text += "\n"
    if translator.card is not None:
        card = read_card(translator.card)
        card.data.library_name = _LIBRARIES[form]  # type: ignore[attr-defined]
        text = f"---\n{card.data.to_yaml()}\n---\n\n{text}\n{card.text.strip()}\n"
    write_atomically(folder / README, lambda path: path.write_text(text, encoding="utf-8"))


def packages(translator: Translator, form: Form) -> list[str]:
    """List the packages that :func:`program` needs."""
    theirs = dict(ctranslate2="ctranslate2", onnx="numpy onnxruntime", torch="torch")
    own = "tokenizers" if isinstance(translator.tokenizer, Tokenizer) else "sentencepiece"
    if form == "marian":
        return ["torch", "transformers"] + [own] * (own == "sentencepiece")
    return [*theirs[form].split(), own]


def program(translator: Translator, form: Form) -> str:
    """Return a program that translates a sentence with the files of an export."""
    call = '\n\nprint(translate("Hello!"))\n'
    if form == "marian":
        return _MARIAN + call
    c, (source, target) = translator.model.config, checked(translator)[1]
    names = packages(translator, form)
    kind = "tokens" if form == "ctranslate2" else "ids"
    if isinstance(source, Tokenizer):
        coding = _BYTE_LEVEL + _BYTE_LEVEL_DECODE[kind]
    else:
        coding = _SENTENCEPIECE + _SENTENCEPIECE_CODING[kind]
        names += ["json"] * (kind == "ids")
    imports = "".join(f"import {name}\n" for name in sorted(names))
    own = getattr(source, "vocabulary", None) != getattr(target, "vocabulary", None)
    parts = Template(_ENGINES[form] + coding + _TRANSLATE[form]).substitute(
        kind=kind,
        split=_SPLIT_CODE if getattr(source, "language_codes", []) else _SPLIT,
        source_file=VOCABULARY,
        target_file=TARGET_VOCABULARY if own else VOCABULARY,
        penalty=LENGTH_PENALTY,
        pad=c.pad_id,
        bos=c.bos_id,
        eos=c.eos_id,
        extra=EXTRA_LENGTH - 1,  # the source has EOS
        longest=c.max_length,
    )
    imports = imports.replace("import numpy\n", "import numpy as np\n")
    return f'{imports}\nfolder = "."  # where this file is\n{parts}{call}'
