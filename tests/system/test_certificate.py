"""A certificate of its own: made once, kept from others, and anew where it does not fit."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import socket
import ssl
import stat
import threading

import pytest

from heimdall.errors import ConfigError
from heimdall.system import certificate

NAMES = ["127.0.0.1", "localhost", "192.0.2.7"]
POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of files")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "config"
    monkeypatch.setenv(certificate.CONFIG, str(place))
    return place


def kept(folder):
    return folder / "phone.pem"


def test_it_is_made_once(folder):
    first, second = certificate.own(NAMES), certificate.own(NAMES)
    assert first.own
    assert first.fingerprint == second.fingerprint
    assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", first.fingerprint)


@POSIX
def test_no_other_user_can_read_the_key(folder):
    certificate.own(NAMES)
    assert stat.S_IMODE(kept(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [each.name for each in folder.iterdir()] == ["phone.pem"]


def test_another_address_of_the_machine_needs_another_one(folder):
    first = certificate.own(NAMES)
    assert certificate.own([*NAMES, "192.0.2.8"]).fingerprint != first.fingerprint


def test_one_that_is_about_to_expire_is_replaced(folder, monkeypatch):
    monkeypatch.setattr(certificate, "_VALID", datetime.timedelta(days=10))
    first = certificate.own(NAMES)
    monkeypatch.undo()
    monkeypatch.setenv(certificate.CONFIG, str(folder))
    assert certificate.own(NAMES).fingerprint != first.fingerprint


def test_a_damaged_one_is_replaced(folder):
    certificate.own(NAMES)
    kept(folder).write_text("no certificate")
    assert certificate.own(NAMES).fingerprint


@POSIX
def test_a_folder_that_others_may_write_to_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        certificate.own(NAMES)


def test_a_folder_that_cannot_be_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(certificate.CONFIG, str(tmp_path / "file" / "config"))
    with pytest.raises(ConfigError, match=certificate.CONFIG):
        certificate.own(NAMES)


def test_a_client_that_trusts_it_is_connected_by_each_name(folder):
    shown = certificate.own(NAMES)
    trusting = ssl.create_default_context(cafile=kept(folder))
    for name in ("localhost", "127.0.0.1"):
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def serve(listening=listening):
                arrived, _ = listening.accept()
                with shown.context.wrap_socket(arrived, server_side=True) as secure:
                    secure.sendall(b"x")

            serving = threading.Thread(target=serve)
            serving.start()
            with (
                socket.create_connection(listening.getsockname()) as plain,
                trusting.wrap_socket(plain, server_hostname=name) as secure,
            ):
                assert secure.recv(1) == b"x"
                der = secure.getpeercert(binary_form=True)
            serving.join()
        assert hashlib.sha256(der).hexdigest().upper() == shown.fingerprint.replace(":", "")


def test_the_users_own_one_is_taken(folder, tmp_path):
    made = certificate.own(NAMES)
    found = certificate.load(kept(folder))
    assert found.fingerprint == made.fingerprint
    assert not found.own


@pytest.mark.parametrize("content", ["", "no certificate", "\udcff"])
def test_what_is_no_certificate_is_named(tmp_path, content):
    file = tmp_path / "mine.pem"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=r"mine\.pem.*its key"):
        certificate.load(file)


def test_one_without_its_key_is_named(folder, tmp_path):
    certificate.own(NAMES)
    half = tmp_path / "half.pem"
    half.write_text(kept(folder).read_text().partition("-----BEGIN PRIVATE")[0])
    with pytest.raises(ConfigError, match=r"half\.pem"):
        certificate.load(half)
    with pytest.raises(ConfigError, match="No such file"):
        certificate.load(tmp_path / "none.pem")
