"""The collector's commands: served from one line, with TLS, with several processes, and told to stop."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from cli.terminal import exit_code
from ledger.servers import Server
from sabun.keyvalue import Study
from sabun.service.process import listening, web_server
from sabun.service.settings import Settings, opened_store
from service.devices import KV3, PATIENCE, Uploader, made_up

ROOT = Path(__file__).parents[2]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KV3.save("study.json")
    return tmp_path / "study.json"


@contextlib.contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`sabun keyvalue serve study.json` with its address, once it is told."""
    command = [sys.executable, "-m", "sabun", "keyvalue", "serve", "study.json", "--port", "0", *words]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("Dashboard: "), line + (folder / "log").read_text()
        yield process, line.split()[1].rstrip("/")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def answered(address: str, context: ssl.SSLContext | None = None) -> bytes:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address, timeout=30, context=context) as answer:
                return answer.read()  # type: ignore[no-any-return]
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_one_line_serves_a_study_and_a_signal_ends_it(study: Path) -> None:
    with serving(study.parent) as (process, address):
        assert b"<html" in answered(address + "/")
        uploader = Uploader(int(address.rpartition(":")[2]), KV3)
        uploader.send(made_up(KV3, 50, seed=1))
        uploader.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    store = opened_store("study.reports", "study.keys")
    assert store.tally(store.all_served()[0], 0).n == 50
    store.database.close()
    assert oct(os.stat("study.reports").st_mode)[-3:] == "600"
    assert oct(os.stat("study.keys").st_mode)[-3:] == "700"


def test_several_processes_share_a_port_and_one_that_is_killed_comes_back(study: Path, postgres: Server) -> None:
    import psutil

    database = f"{postgres.address(ledger=None)}&collector=several"
    with serving(study.parent, "--database", database, "--processes", "2") as (process, address):
        answered(address + "/health")
        parent = psutil.Process(process.pid)
        deadline = time.monotonic() + PATIENCE

        def workers() -> list[psutil.Process]:
            alive = [child for child in parent.children() if child.status() != psutil.STATUS_ZOMBIE]
            return [child for child in alive if "spawn_main" in " ".join(child.cmdline())]

        while len(workers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        workers()[0].kill()
        uploader = Uploader(int(address.rpartition(":")[2]), KV3)
        uploader.send(made_up(KV3, 20, seed=2))
        uploader.close()
        while len(workers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(workers()) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    store = opened_store(database, "study.keys")
    assert store.tally(store.all_served()[0], 0).n == 20
    store.database.close()


def test_tls_by_flags(study: Path) -> None:
    _certificate(study.parent)
    with serving(study.parent, "--tls-cert", "cert.pem", "--tls-key", "key.pem") as (_, address):
        assert address.startswith("https://")
        assert json.loads(answered(address + "/health", ssl.create_default_context(cafile="cert.pem")))["status"] == "ok"


def test_who_never_shakes_hands_keeps_nobody_out(study: Path) -> None:
    """Four times as many as a process listens to, none of which gets as far as a request."""
    _certificate(study.parent)
    settings = Settings(database="", keys="", tls_cert="cert.pem", tls_key="key.pem", connections=5, header_seconds=600)
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))])
    made, server = listening("127.0.0.1", 0, shared=False), web_server(app, settings)
    place = made.getsockname()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [made]})
    thread.start()
    context = ssl.create_default_context(cafile="cert.pem")
    try:
        assert answered(f"https://127.0.0.1:{place[1]}/", context) == b"here"
        with contextlib.ExitStack() as lines:
            silent = [lines.enter_context(socket.create_connection(place, timeout=15)) for _ in range(20)]
            for line in silent[1::2]:
                line.sendall(b"\x16\x03\x01")
            assert answered(f"https://127.0.0.1:{place[1]}/", context) == b"here"
            for line in silent[:10]:  # hung up on, long before their time
                with contextlib.suppress(ConnectionResetError):
                    assert line.recv(1000) == b""
    finally:
        server.should_exit = True
        thread.join()


def _certificate(folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))


def test_operators_and_tickets_come_from_the_command_line(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("keyvalue", "serve", "study.json", "--tickets", "--check", "--json") == 0
    assert json.loads(capsys.readouterr().out)["studies"] == [KV3.terms.short_id.hex()]
    assert exit_code("keyvalue", "operator", "add", "study.json", "alice", "--scope", "read,close", "--json") == 0
    assert json.loads(capsys.readouterr().out)["token"].startswith("sabun-")
    assert exit_code("keyvalue", "operator", "list", "study.json", "--json") == 0
    [alice] = json.loads(capsys.readouterr().out)["operators"]
    assert (alice["name"], alice["scopes"], alice["study"]) == ("alice", ["close", "read"], "this")
    assert exit_code("keyvalue", "operator", "revoke", "study.json", "alice") == 0
    assert exit_code("keyvalue", "operator", "revoke", "study.json", "alice") == 2
    assert exit_code("keyvalue", "tickets", "study.json", "--count", "5", "--out", "tickets.txt") == 0
    tickets = Path("tickets.txt").read_text().split()
    assert len({*tickets}) == 5
    assert oct(os.stat("tickets.txt").st_mode)[-3:] == "600"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--processes", "2"], "PostgreSQL"),
        (["--tls-cert", "study.json"], "together"),
        (["--tls-cert", "none.pem", "--tls-key", "none.pem"], "tls-cert"),
        (["--tls-cert", "study.json", "--tls-key", "study.json"], "a certificate and its key"),
        (["--port", "70000"], "port"),
        (["--retention-days", "-1"], "--retention-days"),
        (["--database", "postgresql://[bad"], "database"),
        (["--index-seed", "00"], "seed"),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_made(
    study: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    code = exit_code("keyvalue", "serve", "study.json", *words, "--check")
    error = capsys.readouterr().err
    assert (code, told in error) in {(2, True)}, error
    assert "[bad" not in error


def test_tickets_need_a_study_that_takes_them(study: Path) -> None:
    assert exit_code("keyvalue", "tickets", "study.json", "--out", "tickets.txt") == 2
    assert not Path("tickets.txt").exists()


def test_a_token_is_for_a_store_that_serves_the_study(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["add", "study.json", "alice"], ["list", "study.json"], ["revoke", "study.json", "alice"]):
        assert exit_code("keyvalue", "operator", *words) == 2
        error = capsys.readouterr().err
        assert "--database" in error
        assert "--keys" in error
    assert not Path("study.reports").exists()
    assert not Path("study.keys").exists()
    assert exit_code("keyvalue", "serve", "study.json", "--check") == 0
    Study(keys=["a", "b"], epsilon=1).save("other.json")
    places = ["--database", "study.reports", "--keys", "study.keys"]
    assert exit_code("keyvalue", "operator", "add", "other.json", "alice", *places) == 2
    assert exit_code("keyvalue", "operator", "add", "study.json", "alice", "--keys", "elsewhere") == 2
    assert not Path("elsewhere").exists()
    assert exit_code("keyvalue", "operator", "add", "study.json", "alice") == 0


def test_a_lost_folder_of_keys_is_said_and_the_studies_are_served(study: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert exit_code("keyvalue", "serve", "study.json", "--check") == 0
    shutil.rmtree("study.keys")
    assert exit_code("keyvalue", "serve", "study.json", "--check") == 0
    assert "folder of keys" in caplog.text


def test_several_studies_are_served_from_one_line(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Study(keys=["a", "b"], epsilon=1).save("other.json")
    assert exit_code("keyvalue", "serve", "study.json", "other.json", "--check", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["studies"]) == 2


def test_a_page_of_ones_own_is_the_clients_example_with_the_study_filled_in(study: Path) -> None:
    assert exit_code("keyvalue", "page", "study.json", "--server", 'http://x:1/"a&b/', "--out", "page", "--lang", "en") == 0
    text = Path("page/index.html").read_text(encoding="utf-8")
    task = KV3.terms.short_id.hex()
    for value in (' value="http://x:1/&quot;a&amp;b"', f' value="{task}"'):
        assert text.count(value) == 1
        text = text.replace(value, "")
    if (ROOT / "js").is_dir():
        example = (ROOT / "js" / "example" / "index.html").read_text(encoding="utf-8")
        assert text == example.replace('"../src/index.js"', '"./client/index.js"')
    loaded = re.findall(
        r'from "\./([a-z]+\.js)"', "".join(file.read_text("utf-8") for file in Path("page/client").glob("*.js"))
    )
    assert {*loaded, "index.js"} == {file.name for file in Path("page/client").iterdir()}
    assert exit_code("keyvalue", "page", "study.json", "--server", "http://x:1", "--out", "page") == 2, "it is there already"
    for server in ("x:1", "http://[::1", "http://x:99999", "http://x y", "http://"):
        assert exit_code("keyvalue", "page", "study.json", "--server", server, "--out", "other") == 2
    assert not Path("other").exists()
    assert exit_code("keyvalue", "page", "study.json", "--server", "http://x:1", "--out", "other", "--lang", "ja") == 0
    spoken = Path("other/index.html").read_text(encoding="utf-8")
    assert '<html lang="ja">' in spoken
    shown = re.sub(r"<script.*</script>|<[^>]*>", "", spoken, flags=re.DOTALL)
    assert re.findall(r"[A-Za-z]{2,}", shown.replace("Sabun", "")) == []
    assert not re.search(r'"(counted|sent before|refused|yes or nothing)', spoken)
