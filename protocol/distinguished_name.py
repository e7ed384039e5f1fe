"""The subject of a certificate as Java's X500Principal.getName() spells it (RFC 2253), which names a principal; and the
certificate's alternative names.

Reads only the parts of the DER bytes that lead to these names. OpenSSL has checked the certificate before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
EXPLICIT_VERSION: Final = 0xA0
SUBJECT_INDEX: Final = 4
"""Index of the subject, after serial number, signature algorithm, issuer and validity."""

EXTENSIONS: Final = 0xA3
OCTETS: Final = 0x04
ALTERNATIVE_NAMES: Final = bytes.fromhex("551d11")
"""Object identifier of subjectAltName (2.5.29.17), in DER."""

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attribute types with a keyword. Other types are spelled as numbers, and their values in hexadecimal."""

ENCODINGS: Final = {
    0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1B: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be",
}  # fmt: skip
"""The encodings of string types, by tag."""

ESCAPED: Final = frozenset(',=+<>#;"\\')


class Element(NamedTuple):
    """A value in DER."""

    tag: int
    content: bytes
    encoded: bytes


def subject(certificate: bytes) -> str:
    """Returns the subject of a certificate in DER. Raises ValueError for malformed bytes."""
    try:
        (whole,) = _elements(certificate)
        signed = next(_elements(whole.content))
        fields = [field for field in _elements(signed.content) if field.tag != EXPLICIT_VERSION]
        return name_of(fields[SUBJECT_INDEX].content)
    except (IndexError, StopIteration, UnicodeDecodeError) as error:
        raise ValueError(f"a certificate whose subject cannot be read: {error}") from error


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """Returns the encoded alternative names (subjectAltName) of a certificate in DER. Raises ValueError for malformed
    bytes."""
    try:
        (whole,) = _elements(certificate)
        signed = next(_elements(whole.content))
        extensions = [field.content for field in _elements(signed.content) if field.tag == EXTENSIONS]
        listed = [
            extension
            for content in extensions
            for sequence in _elements(content)
            for extension in _elements(sequence.content)
        ]
        return frozenset(name for extension in listed for name in _names_in(extension))
    except (IndexError, StopIteration) as error:
        raise ValueError(f"a certificate whose names cannot be read: {error}") from error


def _names_in(extension: Element) -> Iterator[bytes]:
    kind, *rest = _elements(extension.content)
    if kind.content == ALTERNATIVE_NAMES:
        (value,) = (element for element in rest if element.tag == OCTETS)
        (names,) = _elements(value.content)
        yield from (name.encoded for name in _elements(names.content))


def name_of(names: bytes) -> str:
    """Returns the text of a name in DER. Its last part comes first."""
    parts = ["+".join(map(_attribute, _elements(part.content))) for part in _elements(names)]
    return ",".join(reversed(parts))


def _attribute(attribute: Element) -> str:
    kind, value = _elements(attribute.content)
    number = _number(kind.content)
    keyword = KEYWORDS.get(number)
    encoding = ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding))}"


def _escaped(text: str) -> str:
    inner = text.strip(" ")
    lead = len(text) - len(text.lstrip(" "))
    trail = len(text) - lead - len(inner)
    escaped = "".join("\\00" if char == "\0" else f"\\{char}" if char in ESCAPED else char for char in inner)
    return "\\ " * lead + escaped + "\\ " * trail


def _number(content: bytes) -> str:
    """Returns an object identifier in dotted notation."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes) -> Iterator[Element]:
    """Yields consecutive values. Raises ValueError for a value that is longer than the data."""
    position = 0
    while position < len(data):
        start, tag, size = position, data[position], data[position + 1]
        position += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[position : position + count])
            position += count
        end = position + size
        if end > len(data):
            raise ValueError(f"a value of {size} bytes does not fit in the {len(data) - position} that are left")
        yield Element(tag, data[position:end], data[start:end])
        position = end
