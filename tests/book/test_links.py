"""`make links` notices a dead link: tried on a small book and a server of our own."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
OPTIONS = re.search(r"^links:.*\n\t\$\(BIN\)/jupyter-book build (\. .*)$", MAKEFILE, re.M)[1]
PAGE = b"<html><body><p id='there'>Here.</p></body></html>"


class Site(BaseHTTPRequestHandler):
    """One page that is there, and nothing else."""

    def do_GET(self):
        self.send_response(200 if self.path.startswith("/good") else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def check_links(folder, links):
    """The exit status of the command that `make links` runs, and what each link answered."""
    ours = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    # What our own configuration says of links holds here as well.
    settings = {
        name: value
        for name, value in ours["sphinx"]["config"].items()
        if name.startswith("linkcheck")
    }
    config = {"title": "A", "execute": {"execute_notebooks": "off"}, "sphinx": {"config": settings}}
    (folder / "_config.yml").write_text(yaml.safe_dump(config))
    (folder / "_toc.yml").write_text("format: jb-book\nroot: start\n")
    (folder / "start.md").write_text("# A\n\n" + "\n".join(f"- [a]({link})" for link in links))
    command = [Path(sys.executable).parent / "jupyter-book", "build", *OPTIONS.split()]
    direct = os.environ | {"NO_PROXY": "*", "no_proxy": "*"}
    done = subprocess.run(command, cwd=folder, env=direct, capture_output=True, text=True)
    listed = folder / "_build/links/_build/html/output.json"
    rows = [json.loads(line) for line in listed.read_text().splitlines()]
    return done.returncode, {row["uri"]: row["status"] for row in rows}


def test_good_links_pass_and_are_listed(site, tmp_path):
    good = f"{site}/good#there"
    assert check_links(tmp_path, [good]) == (0, {good: "working"})


def test_a_dead_link_and_a_missing_anchor_fail(site, tmp_path):
    links = [f"{site}/good", f"{site}/dead", f"{site}/good#gone"]
    status, found = check_links(tmp_path, links)
    assert status != 0
    assert [found[link] for link in links] == ["working", "broken", "broken"]


def test_the_list_that_is_kept_is_the_one_that_is_written():
    workflow = (ROOT / ".github/workflows/links.yml").read_text(encoding="utf-8")
    assert "make links" in workflow and "_build/links/_build/html/output.json" in workflow
    assert "schedule" in yaml.safe_load(workflow)[True]  # YAML reads the key "on" as true
    assert "links" not in (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
