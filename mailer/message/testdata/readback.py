"""Reads messages with Python's email package, for TestNastyPython.

stdin: messages, each after a line with its length in bytes. stdout: a line of JSON for each, with what was read and the
defects that the parser noted.
"""
import email
import email.header
import email.policy
import email.utils
import json
import sys


def defects(part):
    found = list(part.defects)
    for _, value in part.items():
        found += value.defects
    return [repr(d) for d in found]


def address(message, name):
    addresses = message[name].addresses if name in message else []
    if len(addresses) > 1:
        return "", "%d addresses" % len(addresses)
    return next(((a.display_name, a.addr_spec) for a in addresses), ("", ""))


def older_name(raw):
    """The name of From by the older API. The newer one puts spaces between encoded words, although RFC 2047 6.2 forbids it,
    and makes one space of many within them (github.com/python/cpython/issues/79728)."""
    value = email.message_from_bytes(raw)["From"].replace("\r\n", "")
    name, _ = email.utils.parseaddr(value)
    return str(email.header.make_header(email.header.decode_header(name)))


def read(raw):
    message = email.message_from_bytes(raw, policy=email.policy.default)
    from_name, from_address = address(message, "From")
    got = {
        "FromName": older_name(raw),
        "Unspaced": "".join(from_name.split()),
        "From": from_address,
        "To": address(message, "To")[1],
        "ReplyTo": address(message, "Reply-To")[1],
        "Subject": str(message["Subject"]),
        "MessageID": str(message["Message-ID"]),
        "Media": message.get_content_type(),
        "Text": "",
        "HTML": "",
        "Defects": [],
    }
    for part in message.walk():
        got["Defects"] += defects(part)
        if part.is_multipart():
            continue
        body = part.get_payload(decode=True).decode(part.get_content_charset())
        got["HTML" if part.get_content_type() == "text/html" else "Text"] += body
    return got


while header := sys.stdin.buffer.readline():
    print(json.dumps(read(sys.stdin.buffer.read(int(header)))), flush=True)
