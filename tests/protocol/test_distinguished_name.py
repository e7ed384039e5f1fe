"""Tests names as Java's X500Principal.getName() spells them; the encodings are Java's own."""

from __future__ import annotations

import pytest

from protocol.distinguished_name import name_of, subject


@pytest.mark.parametrize(("name", "encoded"), [
    ("CN=kafka,OU=a\\,b,L=q+O=x\\=y\\#z,C=US",
     "310b3009060355040613025553311830080603550407130171300c060355040a0c05783d79237a310c300a060355040b1303612c62310e300c"
     "060355040313056b61666b61"),
    ("CN=\\ lead\\ ,STREET=s,DC=d,UID=u,ST=st",
     "310b30090603550408130273743111300f060a0992268993f22c6401011301753111300f060a0992268993f22c640119160164310a3008060355"
     "0409130173310f300d06035504031306206c65616420"),
    ("1.2.840.113549.1.9.1=#16056140622e63,CN=\\\"q\\\"\\<\\>\\;\\\\",
     "3110300e06035504030c072271223c3e3b5c3114301206092a864886f70d01090116056140622e63"),
    ("CN=ümlaut,2.5.4.12=#13057469746c65,2.5.4.5=#13023132",
     "310b3009060355040513023132310e300c060355040c13057469746c653110300e06035504030c07c3bc6d6c617574"),
    ("", ""),
])  # fmt: skip
def test_a_name_is_spelled_as_java_spells_it(name: str, encoded: str) -> None:
    assert name_of(bytes.fromhex(encoded)) == name


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x03\x02\x01\x01", b"\x30\x82\xff\xff\x00", bytes(40)])
def test_what_is_no_certificate_is_told(data: bytes) -> None:
    with pytest.raises(ValueError):
        subject(data)
