"""Takes fields off a record, and refuses what is not as it should be, for script/read-array."""

import unicodedata
import uuid


class Refused(Exception):
    """The drives do not make an array, or a record breaks a rule of the page."""


def need(condition, message):
    if not condition:
        raise Refused(message)


class Cursor:
    """Takes fields off a record."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        need(self.at + length <= len(self.data), "the record is too short for its lists")
        self.at += length
        return self.data[self.at - length:self.at]

    def fields(self, layout):
        return layout.unpack(self.take(layout.size))

    def text(self, length, most, least=1):
        need(least <= length <= most, "a text's length is out of bounds")
        try:
            text = self.take(length).decode()
        except UnicodeDecodeError:
            raise Refused("a text is not UTF-8") from None
        need(not any(unicodedata.category(c) == "Cc" for c in text),
             "a text has control characters")
        return text

    def name(self, length):
        text = self.text(length, 64)
        need("/" not in text, "a name contains /")
        return text


def uuid_text(raw):
    need(any(raw), "a UUID is nil")
    return str(uuid.UUID(bytes=raw))


def distinct(values, what):
    values = list(values)
    need(len(set(values)) == len(values), f"{what} occurs twice")
