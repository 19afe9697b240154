"""Exports of an array record: docs/format-exports.md."""

import struct

from fields import Cursor, distinct, need, uuid_text

EXPORT = struct.Struct("<16sIBBH")
EXPORT_KINDS = ("nbd-tcp", "nbd-unix", "nvme-tcp", "device", "file", "ublk", "vhost-user", "iscsi",
                "shares")
LOCAL = "device", "file", "ublk", "vhost-user"
NVME_EXPORT = struct.Struct("<IHH")
ISCSI_EXPORT = struct.Struct("<HHB3s")
SHARES_EXPORT = struct.Struct("<HBB4s")
SHARE = struct.Struct("<BBHH")
ACCESS = struct.Struct("<B")
LENGTH = struct.Struct("<H")


def texts_of(cursor):
    return lambda most, least=1: cursor.text(*cursor.fields(LENGTH), most, least)


def parse_nvme(cursor):
    need(len(cursor.data) <= 16384, "an export says too much")
    nsid, listeners, hosts = cursor.fields(NVME_EXPORT)
    need(1 <= nsid <= 1024 and 1 <= listeners <= 16 and hosts <= 128,
         "an export over NVMe/TCP is not valid")
    text = texts_of(cursor)
    export = {"subsystem": text(223), "nsid": nsid,
              "listeners": [{"address": text(256), "advertise": text(256, 0) or None}
                            for _ in range(listeners)],
              "hosts": [text(223) for _ in range(hosts)] or None}
    need(cursor.at == len(cursor.data), "there are bytes behind what an export says")
    return export


def parse_iscsi(cursor):
    need(len(cursor.data) <= 16384, "an export says too much")
    portals, initiators, server, secret = cursor.fields(ISCSI_EXPORT)
    need(1 <= portals <= 16 and 1 <= initiators <= 128 and server <= 2,
         "an export over iSCSI is not valid")
    text = texts_of(cursor)
    export = {"user": text(64, 0) or None, "secret": int.from_bytes(secret, "little"),
              "portals": [{"address": text(256), "advertise": text(256, 0) or None}
                          for _ in range(portals)],
              "initiators": [text(223) for _ in range(initiators)],
              "server": (None, "lio", "tgt")[server]}
    need(cursor.at == len(cursor.data), "there are bytes behind what an export says")
    return export


def parse_shares(cursor):
    need(len(cursor.data) <= 16384, "an export says too much")
    count, make, overwrite, rest = cursor.fields(SHARES_EXPORT)
    need(1 <= count <= 128 and make <= 2 and overwrite <= (make > 0) and not any(rest),
         "the shares of a file system are not valid")
    text = texts_of(cursor)
    export = {"make": (None, "xfs", "ext4")[make], "overwrite": bool(overwrite),
              "smb": text(256), "nfs": text(256), "shares": []}
    for _ in range(count):
        bits, rest, users, clients = cursor.fields(SHARE)
        need(1 <= bits <= 7 and bits & 3 and not rest and max(users, clients) <= 128,
             "a share is not valid")
        share = {"name": text(240), "smb": bool(bits & 1), "nfs": bool(bits & 2),
                 "read_only": bool(bits & 4)}
        for kind, size in ("users", users), ("clients", clients):
            share[kind] = []
            for _ in range(size):
                access, = cursor.fields(ACCESS)
                need(access <= 1, "what somebody may do with a share is not known")
                share[kind].append({"who": text(64), "read_only": bool(access)})
        export["shares"].append(share)
    need(cursor.at == len(cursor.data), "there are bytes behind what an export says")
    return export


def parse_exports(cursor, count, flags):
    begin = cursor.at
    exports = [parse_export(cursor) for _ in range(count)]
    need(cursor.at - begin <= 71680, "the exports say more than a record has room for")
    nvme = [export for export in exports if export["kind"] == "nvme-tcp"]
    need(flags & 4 or not nvme, "an export over NVMe/TCP that no flag announces")
    local = [export for export in exports if export["kind"] in LOCAL]
    need(bool(flags & 16) == bool(local), "an export on the server itself and its flag disagree")
    iscsi = [export for export in exports if export["kind"] == "iscsi"]
    need(bool(flags & 32) == bool(iscsi), "an export over iSCSI and its flag disagree")
    files = [export for export in exports if export["kind"] == "shares"]
    need(bool(flags & 64) == bool(files), "a shared file system and its flag disagree")
    distinct((export["volume_uuid"] for export in iscsi), "a target")
    shared = {export["volume_uuid"] for export in files}
    distinct((export["volume_uuid"] for export in exports if export["volume_uuid"] in shared),
             "a volume that is shared")
    distinct((share["name"] for export in files for share in export["shares"]), "a share's name")
    distinct(((export["subsystem"], export["nsid"]) for export in nvme), "a namespace")
    return exports


def parse_export(cursor):
    volume, identity, kind, rest, length = cursor.fields(EXPORT)
    need(1 <= kind <= len(EXPORT_KINDS) and not rest, "an export entry is not valid")
    if kind == 3:
        return {"id": identity, "volume_uuid": uuid_text(volume), "kind": "nvme-tcp",
                **parse_nvme(Cursor(cursor.take(length)))}
    if kind == 8:
        return {"id": identity, "volume_uuid": uuid_text(volume), "kind": "iscsi",
                **parse_iscsi(Cursor(cursor.take(length)))}
    if kind == 9:
        return {"id": identity, "volume_uuid": uuid_text(volume), "kind": "shares",
                **parse_shares(Cursor(cursor.take(length)))}
    entry = {"id": identity, "volume_uuid": uuid_text(volume), "kind": EXPORT_KINDS[kind - 1]}
    if kind in (4, 6):
        need(not length, "a block device has an address")
        return entry
    address = cursor.text(length, 256)
    need(kind not in (5, 7) or address.startswith("/"), "the path of a file or socket is relative")
    return {**entry, "address": address}
