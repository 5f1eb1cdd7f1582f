from __future__ import annotations

import base64
import dataclasses
import json
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from release.release_samples import sample
from sabun.errors import DataError, ParameterError, ReleaseError, SimulatedError
from sabun.release import Release, fingerprint, generate_key, load_key, save_key
from sabun.release.encoding import canonical
from sabun.release.signature import Signature
from sabun.release.signing_keys import is_weak, public_bytes

KEY = generate_key()
SIGNED = sample(value={"count": 7, "share": 0.25}).sign(KEY)
CONTENT = SIGNED.to_json()


def test_a_signed_release_is_verified_after_a_round_trip(tmp_path: Path) -> None:
    SIGNED.save(tmp_path / "count.json")
    signer = Release.load(tmp_path / "count.json").verify(KEY.public_key())
    assert signer.trusted
    assert signer.fingerprint == fingerprint(public_bytes(KEY))
    assert "Signed by " + signer.fingerprint in str(SIGNED)


def test_one_of_several_trusted_keys_is_enough() -> None:
    assert SIGNED.verify([generate_key().public_key(), KEY.public_key()]).trusted


def test_without_a_key_only_wholeness_is_checked() -> None:
    assert not SIGNED.verify().trusted


def test_an_unsigned_release_is_refused() -> None:
    with pytest.raises(ReleaseError, match="must be signed; it is not"):
        sample().verify()


@pytest.mark.parametrize("trusted", [generate_key().public_key(), []])
def test_another_key_is_refused(trusted: object) -> None:
    with pytest.raises(ReleaseError, match="signed by a trusted key; it is signed by"):
        SIGNED.verify(trusted)  # type: ignore[arg-type]


def test_a_signature_moved_to_another_release_is_refused() -> None:
    forged = dataclasses.replace(sample(value={"count": 8, "share": 0.25}), signature=SIGNED.signature)
    with pytest.raises(ReleaseError, match="changed or forged"):
        forged.verify(KEY.public_key())


def test_a_forger_with_a_key_of_their_own_is_found() -> None:
    forged = sample(value={"count": 8}).sign(generate_key())
    forged.verify()
    with pytest.raises(ReleaseError, match="trusted key"):
        forged.verify(KEY.public_key())


def test_what_is_signed_says_that_it_is_a_release() -> None:
    bare = SIGNED.to_json().replace(b',"signature":' + canonical(json.loads(CONTENT)["signature"]), b"")
    signature = SIGNED.signature
    assert signature is not None
    KEY.public_key().verify(signature.signature, b"sabun-release-1\n" + bare)
    for other in (bare, b"another-format-1\n" + bare):
        forged = dataclasses.replace(SIGNED, signature=dataclasses.replace(signature, signature=KEY.sign(other)))
        with pytest.raises(ReleaseError, match="changed or forged"):
            forged.verify(KEY.public_key())


def test_an_array_that_was_played_with_does_not_break_the_signature() -> None:
    signed = sample(value={"x": np.arange(6.0)}).sign(KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        signed["x"].dtype = "<i8"
        signed["x"].shape = (2, 3)
    signed.value.__init__({"x": 1})  # type: ignore[misc]
    assert signed["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert signed.verify(KEY.public_key()).trusted


@settings(max_examples=400, deadline=None)
@given(place=st.integers(0, len(CONTENT) - 1), flip=st.integers(1, 255))
def test_a_flip_of_any_byte_is_detected(place: int, flip: int) -> None:
    changed = bytearray(CONTENT)
    changed[place] ^= flip
    with pytest.raises((ReleaseError, SimulatedError)):
        Release.from_json(bytes(changed)).verify(KEY.public_key())


def test_a_byte_that_is_cut_out_is_detected() -> None:
    for place in range(0, len(CONTENT), 3):
        with pytest.raises(ReleaseError):
            Release.from_json(CONTENT[:place] + CONTENT[place + 1 :]).verify(KEY.public_key())


def test_signing_again_replaces_the_signature() -> None:
    other = generate_key()
    assert SIGNED.sign(other).verify(other.public_key()).trusted
    assert SIGNED.sign(KEY).to_json() == CONTENT


def test_only_a_private_key_signs() -> None:
    with pytest.raises(ParameterError, match="private_key must be a private Ed25519 key; got"):
        sample().sign(KEY.public_key())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="public_key must be an Ed25519 key or several; got int"):
        SIGNED.verify(3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="key must be an Ed25519 key; got int"):
        SIGNED.verify([3])  # type: ignore[list-item]


def test_keys_are_saved_for_their_owner_only(tmp_path: Path) -> None:
    save_key(KEY, tmp_path / "me.pem")
    save_key(KEY.public_key(), tmp_path / "me.pub.pem")
    assert stat.S_IMODE((tmp_path / "me.pem").stat().st_mode) == 0o600
    private, public = load_key(tmp_path / "me.pem"), load_key(tmp_path / "me.pub.pem")
    assert public_bytes(private) == public_bytes(public) == public_bytes(KEY)
    assert b"PRIVATE" not in (tmp_path / "me.pub.pem").read_bytes()


def test_a_key_file_is_not_overwritten(tmp_path: Path) -> None:
    save_key(KEY, tmp_path / "me.pem")
    with pytest.raises(DataError, match="exists already"):
        save_key(generate_key(), tmp_path / "me.pem")
    save_key(generate_key(), tmp_path / "me.pem", overwrite=True)
    assert stat.S_IMODE((tmp_path / "me.pem").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"hello", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_not_a_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.pem").write_bytes(content)
    with pytest.raises(DataError, match="unencrypted Ed25519 key in PEM form"):
        load_key(tmp_path / "bad.pem")


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    other = X25519PrivateKey.generate().public_key()
    pem = other.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "other.pem").write_bytes(pem)
    with pytest.raises(DataError, match="unencrypted Ed25519"):
        load_key(tmp_path / "other.pem")
    with pytest.raises(ParameterError, match="key must be an Ed25519 key; got"):
        save_key(other, tmp_path / "x.pem")  # type: ignore[arg-type]


P = 2**255 - 19
Y_OF_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
WEAK = [0, 1, P - 1, Y_OF_ORDER_8, P - Y_OF_ORDER_8, P, P + 1]
"""Every y of a point of order 1, 2, 4 or 8, with the second spellings that fit in 255 bits (as libsodium lists them)."""


def spelled(y: int, sign: int) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("y", WEAK)
def test_a_key_that_anybody_can_sign_with_is_refused_wherever_it_comes_in(y: int, sign: int, tmp_path: Path) -> None:
    weak = spelled(y, sign)
    assert is_weak(weak)
    with pytest.raises(ParameterError, match="only its owner can sign with"):
        Signature(public_key=weak, signature=bytes(64))
    key = Ed25519PublicKey.from_public_bytes(weak)
    with pytest.raises(ParameterError, match="only its owner can sign with"):
        SIGNED.verify(key)
    with pytest.raises(ParameterError, match="only its owner can sign with"):
        save_key(key, tmp_path / "weak.pem")
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "weak.pem").write_bytes(pem)
    with pytest.raises(DataError, match="only its owner can sign with"):
        load_key(tmp_path / "weak.pem")


def test_a_signature_that_fits_every_release_is_refused() -> None:
    identity = spelled(1, 0)
    Ed25519PublicKey.from_public_bytes(identity).verify(identity + bytes(32), b"whatever one likes")
    document = json.loads(CONTENT)
    document["signature"] |= {
        "public_key": base64.b64encode(identity).decode(),
        "signature": base64.b64encode(identity + bytes(32)).decode(),
    }
    with pytest.raises(ReleaseError, match="only its owner can sign with"):
        Release.from_json(canonical(document))


def test_honest_keys_are_not_weak() -> None:
    assert not any(is_weak(public_bytes(generate_key())) for _ in range(50))


def test_a_release_with_a_broken_signature_is_not_signed_again() -> None:
    forged = dataclasses.replace(sample(value={"count": 8, "share": 0.25}), signature=SIGNED.signature)
    with pytest.raises(ReleaseError, match="changed or forged"):
        forged.sign(generate_key())
    other = generate_key()
    assert SIGNED.sign(other).verify(other.public_key()).trusted


def test_a_second_spelling_of_a_key_is_refused() -> None:
    """RFC 8032 has one spelling for each point: a number below the field's size."""
    spellings = [y.to_bytes(32, "little") for y in range(2**255 - 19, 2**255)]
    spellings += [(y | 1 << 255).to_bytes(32, "little") for y in range(2**255 - 19, 2**255)]
    assert all(map(is_weak, spellings))
