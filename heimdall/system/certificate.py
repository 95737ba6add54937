"""A certificate for HTTPS that no authority has signed: browsers give a camera to secure pages
alone, and no authority signs for a laptop in a local network.

It is made once and kept in the user's configuration, so that a phone that has accepted it need not
be asked again; its key is for this user alone.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from heimdall.errors import ConfigError
from heimdall.system import private
from heimdall.system.extras import need
from heimdall.system.paths import replace_file

CONFIG = "HEIMDALL_CONFIG"  # the variable that names another folder
# Apple's devices refuse what is valid for longer than 825 days.
_VALID = datetime.timedelta(days=820)
_LEAST_LEFT = datetime.timedelta(days=30)  # of a kept one; else there is a new one
_FILE = "phone.pem"


@dataclass(frozen=True)
class Certificate:
    """``context``: for a server; ``fingerprint``: SHA-256 of the certificate, as browsers show it;
    ``own``: Heimdall made it, so a browser will ask its user."""

    context: ssl.SSLContext
    fingerprint: str
    own: bool


def config_dir() -> Path:
    """The user's configuration; ``HEIMDALL_CONFIG`` overrides it."""
    return Path(os.environ.get(CONFIG) or platformdirs.user_config_dir("heimdall", appauthor=False))


def load(file: Path) -> Certificate:
    """A certificate of the user's: a PEM file that holds the key, too. Raises ConfigError for what
    is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # One that asks for a password would wait for it at the terminal.
        context.load_cert_chain(file, password=lambda: "")
        der = ssl.PEM_cert_to_DER_cert(_first(file.read_text(encoding="ascii")))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"certificate {file}: {reason}; give a PEM file with the certificate and its key, "
            "without a password"
        ) from error
    digest = hashlib.sha256(der).hexdigest().upper()
    shown = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    return Certificate(context, shown, own=False)


def own(names: Sequence[str]) -> Certificate:
    """Heimdall's own one, valid for the addresses and host ``names``; made where there is none yet,
    or none that fits. Raises ConfigError where it cannot be kept, or others could change it."""
    need("cryptography", "phone", "--phone")
    file = config_dir() / _FILE
    try:
        private.prepare(Path(os.path.realpath(file.parent)))
        if not _fits(file, names):
            replace_file(file, _made(names), secret=True)
        loaded = load(file)
    except (private.NotPrivateError, OSError) as error:
        raise ConfigError(
            f"the certificate {file} cannot be kept: {error}; set {CONFIG} to another folder"
        ) from error
    return Certificate(loaded.context, loaded.fingerprint, own=True)


def _fits(file: Path, names: Sequence[str]) -> bool:
    from cryptography import x509

    try:
        known = x509.load_pem_x509_certificate(file.read_bytes())
        holds = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    left = known.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left > _LEAST_LEFT and all(_name(each) in holds for each in names)


def _made(names: Sequence[str]) -> bytes:
    """A new key and certificate, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Heimdall on this machine")])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # the phone's clock may be behind
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return signed.public_bytes(pem) + key.private_bytes(pem, *plain)


def _name(text: str):  # type: ignore[no-untyped-def]  # cryptography comes with an extra
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text.encode("idna").decode())


def _first(pem: str) -> str:
    """The first certificate of a file: the machine's own, before those of authorities."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = pem.find(begin)
    stop = pem.find(end, start)
    if start < 0 or stop < 0:
        raise ValueError("there is no certificate in it")
    return pem[start : stop + len(end)] + "\n"
