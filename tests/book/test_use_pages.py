"""The pages of "Use the library" run as printed: Python and commands in order, and their outputs.

A ``text`` block is the output of the block before it; ``...`` in it matches anything, as in
doctest. A block below ``<!-- needs NAME -->`` runs where that module is installed. Each page runs
in a folder of its own, beside the sample files that the first page writes. The Hub is faked by
that folder: ``owner/name`` is a path in it.
"""

import contextlib
import doctest
import importlib.util
import io
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.testing.compare import compare_images
from transformers.utils import logging as their_logging
from typer.testing import CliRunner

from transformer import Translator
from transformer.cli import app
from transformer.interop import to_marian
from transformer.training import config

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "book" / "use").glob("*.md"))
BLOCK = re.compile(r"^(?:<!-- needs (\w+) -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MATCHING = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

pytestmark = pytest.mark.usefixtures("unchecked")


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """The first line, the language and the text of each block of code that can run here."""
    text = page.read_text(encoding="utf-8")
    found = (m for m in BLOCK.finditer(text) if not m[1] or importlib.util.find_spec(m[1]))
    return [(text[: m.start(3)].count("\n") + 1, m[2], m[3]) for m in found]


def run_shell(code: str) -> None:
    """Run commands; ``transformer`` alone on a line runs in this process, which has torch."""
    for command in re.sub(r"\\\n\s*", "", code).splitlines():
        words = shlex.split(command, comments=True)
        if not words:
            continue
        if words[:2] == ["pip", "install"]:
            named = re.search(r"\[(.*?)\]", command)
            assert {*(named[1].split(",") if named else [])} <= EXTRAS.keys(), command
        elif words[0] == "transformer" and not {"<", ">", "|"} & {*words}:
            result = CliRunner().invoke(app, words[1:], prog_name="transformer")
            assert result.exit_code == 0, f"{command}\n{result.output}{result.exception!r}"
            sys.stdout.write(result.output)
        else:
            environment = os.environ | {
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            }
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", command],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            sys.stdout.write(done.stdout)


def require_same(expected: str, output: str, page: Path, line: int) -> None:
    if not doctest.OutputChecker().check_output(expected, output, MATCHING):
        pytest.fail(f"{page.name}, line {line} prints\n{output}\nand the page says\n{expected}")


@contextlib.contextmanager
def fresh_process(shown: io.StringIO):
    """Show all output as a terminal does, and undo what a page changes in this process."""
    loggers = logging.root, logging.getLogger("transformer")
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    threads = torch.get_num_threads()
    logging.root.handlers[:] = []  # pytest's own
    their_logging.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            yield
    finally:
        for logger, handlers, level in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
        torch.set_num_threads(threads)
        their_logging.enable_progress_bar()
        plt.close("all")


def run(page: Path) -> None:
    names: dict = {"__name__": "page"}
    shown, seen, output = io.StringIO(), 0, ""
    with fresh_process(shown):
        for line, language, code in blocks(page):
            if language == "text":
                require_same(code, output, page, line)
                continue
            if language == "python":
                exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
            elif language == "bash":
                run_shell(code)
            else:
                pytest.fail(f"{page.name}, line {line}: no rule for a block of {language!r}")
            output, seen = shown.getvalue()[seen:], len(shown.getvalue())


@pytest.fixture(scope="module")
def samples(tmp_path_factory, unchecked):
    """A folder with what the first page writes, and a Marian model under a Hub id."""
    folder = tmp_path_factory.mktemp("use")
    with contextlib.chdir(folder):
        run(ROOT / "book" / "use" / "index.md")
        to_marian(Translator.from_pretrained("tatoeba-en-de"), "Helsinki-NLP/opus-mt-en-de")
    return folder


@pytest.fixture
def fake_hub(monkeypatch):
    """Uploads go to the folder ``owner/name`` here, which the loaders prefer to a download."""

    def create_repo(self, repo_id, **_):
        Path(repo_id).mkdir(parents=True, exist_ok=True)
        return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

    def upload_folder(self, *, repo_id, folder_path, **_):
        shutil.copytree(folder_path, repo_id, dirs_exist_ok=True)

    for function in (create_repo, upload_folder):
        monkeypatch.setattr(huggingface_hub.HfApi, function.__name__, function)


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "index"], ids=lambda p: p.stem)
def test_a_page_runs_as_printed(page, samples, tmp_path, monkeypatch, fake_hub):
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    # Not every processor has bfloat16, and a line more would say so.
    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: True)
    with plt.rc_context():
        plt.rcdefaults()  # other tests choose the style of the book
        run(page)
    for picture in re.findall(r"^```{image} (.*)$", page.read_text(encoding="utf-8"), re.M):
        assert compare_images(str(page.parent / picture), picture, tol=5) is None


def test_the_server_answers_eight_clients_at_once_as_it_answers_one():
    """Half of what they ask for are attention weights."""
    code = next(code for _, _, code in blocks(PAGES[0].parent / "export.md") if "Handler" in code)
    page: dict = {}
    exec(code.partition("\nwith ")[0], page)

    class Handler(page["Handler"]):
        def do_PUT(self):
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found = page["translator"].attention(text)
            self.send_response(200)
            self.end_headers()
            for maps in (found.encoder, found.decoder, found.cross):
                self.wfile.write(maps.tobytes())

    def ask(request):
        client = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        method, text = request
        client.request(method, "/", text.encode())
        return client.getresponse().read()

    texts = ["Where is the train station?", "It is late.", "A man is reading a book.", "No."]
    requests = [(method, text) for text in texts for method in ("POST", "PUT")]
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(8) as clients:
        threading.Thread(target=server.serve_forever).start()
        alone = [ask(request) for request in requests]
        together = [*clients.map(ask, requests * 6)]
        server.shutdown()
    assert together == alone * 6 and all(alone)


def test_the_first_page_runs_and_links_to_every_other(samples):
    """Two clicks from the start page: one to the first page, one from there."""
    links = {*re.findall(r"\]\(([\w./]+)\)", (PAGES[0].parent / "index.md").read_text())}
    assert {page.name for page in PAGES} - {"index.md"} <= links
    assert "use/index.md" in (ROOT / "book" / "intro.md").read_text()


def test_the_readme_shows_what_runs(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Reuse\n")[2].partition("\n## ")[0]
    code = next(m[3] for m in BLOCK.finditer(section) if m[2] == "python")
    exec(code, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", code)
    commands = re.findall(r"^transformer (\w+)(.*)", section.replace("\\\n", ""), re.M)
    assert {command for command, _ in commands} == {"train", "translate"}
    for command, rest in commands:
        usage = CliRunner().invoke(app, [command, "--help"]).output
        assert all(option in usage for option in re.findall(r" (--?[a-z][\w-]*)", rest)), rest
