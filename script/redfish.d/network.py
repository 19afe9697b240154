"""A network of its own for the checks, and a relay from TCP to the daemon's socket."""

import asyncio
import fcntl
import logging
import os
import socket
import struct
import threading

import requests

from report import Failure

# Of Linux: requests to read and to set what an interface is, and two of its flags.
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP, IFF_LOOPBACK = 0x1, 0x8
REQUEST = "16sh14x"
# How many seconds an answer may take.
LIMIT = 120

# What would lead the tools' requests elsewhere, or have them trust other certificates.
LEADING = ("CA_BUNDLE", "_PROXY")


def unled():
    """Takes such things out of the environment."""
    for name in [name for name in os.environ if name.upper().endswith(LEADING)]:
        del os.environ[name]


def flags(asked, name):
    """What an interface is."""
    request = struct.pack(REQUEST, name.encode(), 0)
    return struct.unpack(REQUEST, fcntl.ioctl(asked, SIOCGIFFLAGS, request))[1]


def has_only_loopback():
    """Whether nothing that is sent can leave this machine; brings the loopback up if so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            now = flags(asked, name)
            if now & IFF_LOOPBACK and not now & IFF_UP:
                request = struct.pack(REQUEST, name.encode(), now | IFF_UP)
                fcntl.ioctl(asked, SIOCSIFFLAGS, request)
            elif now & IFF_UP and not now & IFF_LOOPBACK:
                return False
    return True


def relay(path):
    """Leads connections to a port of the loopback to a socket; the port."""
    loop = asyncio.new_event_loop()
    # Connections that are open at the end are nothing to report.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    async def pump(reader, writer):
        try:
            while part := await reader.read(1 << 16):
                writer.write(part)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.close()

    async def serve(reader, writer):
        there, back = await asyncio.open_unix_connection(path)
        await asyncio.gather(pump(reader, back), pump(there, writer))
        for each in (writer, back):
            each.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return server.sockets[0].getsockname()[1]


def fetch(address, path):
    """What a GET answers."""
    answer = requests.get(address + path, timeout=LIMIT)
    if answer.status_code != 200:
        raise Failure(f"GET {path}: {answer.status_code} {answer.text}")
    return answer.text
