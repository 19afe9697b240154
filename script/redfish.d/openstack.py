"""OpenStack's client `sushy`, used as Ironic does: it reads storage, drives and volumes, has a
volume made on drives, which makes the array, too, and deletes it."""

import sushy


MIB = 1 << 20
BODY = {"Encrypted": False, "VolumeType": "StripedWithParity", "RAIDType": "RAID5"}


def connect(place):
    """A client that trusts nothing but the daemon's certificate."""
    return sushy.Sushy(
        place.https,
        auth=sushy.auth.SessionAuth(place.user, place.password),
        verify=str(place.certificate),
        server_side_retries=1,
        server_side_retries_delay=1,
    )


def seen(root):
    """The storage as it is now: what the client has read, it keeps."""
    [storage] = root.get_system().storage.get_members()
    return storage


def reads(report, place, storage):
    """What is read is what the command line says."""
    told = place.daemon.ask("drive", "list")["drives"]
    found = storage.drives
    report.claim(len(found) == len(told), f"{len(told)} drives, found {len(found)}")
    sizes = {drive["bytes"] for drive in told if drive["bytes"]}
    report.claim(sizes == set(storage.drives_sizes_bytes), "the sizes of the drives")
    volumes = {volume.name for volume in storage.volumes.get_members()}
    arrays = place.daemon.ask("status")["arrays"]
    names = {volume["name"] for array in arrays for volume in array["volumes"]}
    report.claim(volumes == names, f"volumes {sorted(names)}, found {sorted(volumes)}")


def makes(report, place, root):
    """Makes a volume on three drives, reads it, deletes it."""
    paths, storage = place.drives.take(3), seen(root)
    chosen = [drive for drive in storage.drives if drive.name in paths]
    report.claim(len(chosen) == 3, f"drives {paths} by their names")
    links = {"Drives": [{"@odata.id": drive.path} for drive in chosen]}
    volume = storage.volumes.create({**BODY, "CapacityBytes": 64 * MIB, "Links": links})
    report.claim(volume.raid_type == sushy.RAIDType.RAID5, f"a RAID 5, got {volume.raid_type}")
    report.claim(volume.capacity_bytes == 64 * MIB, f"64 MiB, got {volume.capacity_bytes}")
    sizes = seen(root).volumes.volumes_sizes_bytes
    report.claim(64 * MIB in sizes, f"the new volume among {sizes}")
    [array] = [
        array
        for array in place.daemon.ask("status")["arrays"]
        if {slot["drive"] for slot in array["slots"]} == set(paths)
    ]
    report.claim(array["level"] == "5", f"an array of level 5, got {array['level']}")
    volume.delete()
    gone = volume.path not in {each.path for each in seen(root).volumes.get_members()}
    report.claim(gone, "the volume is gone")
    place.daemon.ask("array", "delete", array["name"], "--yes")


def check(place, report):
    """The whole visit, from login to logout."""
    root = connect(place)
    system = root.get_system()
    report.claim(system.identity == "local", f"one system, got {system.identity}")
    reads(report, place, seen(root))
    makes(report, place, root)
