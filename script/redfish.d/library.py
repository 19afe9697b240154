"""DMTF's client library, `redfish`: over HTTPS with a session and with Basic, through the relay,
and by HTTP on the daemon's socket. It makes, grows and deletes a volume on each way."""

import redfish


MIB = 1 << 20
STORAGE = "/redfish/v1/Systems/local/Storage/palisade"


def names(found):
    """The names of the resources of a collection that was asked for with them."""
    return sorted(each["Name"] for each in found.dict["Members"])


def reads(report, way, place, client):
    """What is read is what the command line says."""
    report.claim(client.root["Product"] == "Palisade", f"{way}: our product")
    arrays = place.daemon.ask("status")["arrays"]
    found = client.get(f"{STORAGE}/StoragePools", args={"$expand": "."})
    report.claim(names(found) == sorted(array["name"] for array in arrays), f"{way}: all arrays")
    found = client.get(
        f"{STORAGE}/Volumes", args={"$expand": ".($levels=1)", "$filter": "Name eq 'db'"}
    )
    report.claim(names(found) == ["db"], f"{way}: the volume db, got {found.text}")
    found = client.head(STORAGE)
    report.claim(found.status == 200 and not found.text, f"{way}: a HEAD without a body")
    found = client.get("/redfish/v1/?$nonsense")
    report.claim(found.status == 501, f"{way}: 501 for what no service knows, got {found.status}")


def changes(report, way, client):
    """Makes a volume, grows it with its ETag, deletes it."""
    found = client.get(f"{STORAGE}/StoragePools", args={"$filter": "Name eq 'whole'"})
    [pool] = found.dict["Members"]
    body = {
        "Name": "visitor",
        "CapacityBytes": MIB,
        "CapacitySources": [{"ProvidingPools": {"Members": [pool]}}],
    }
    made = client.post(f"{STORAGE}/Volumes", body=body)
    report.claim(made.status == 201, f"{way}: 201 for a volume, got {made.status} {made.text}")
    where = made.getheader("Location")
    read = client.get(where)
    tag = {"If-Match": read.getheader("ETag")}
    grown = client.patch(where, body={"CapacityBytes": 2 * MIB}, headers=tag)
    report.claim(grown.status == 200, f"{way}: 200 for more bytes, got {grown.status} {grown.text}")
    late = client.patch(where, body={"CapacityBytes": 3 * MIB}, headers=tag)
    report.claim(late.status == 412, f"{way}: 412 for an old ETag, got {late.status}")
    refused = client.patch(where, body={"CapacityBytes": 3 * MIB, "Colour": "red"})
    said = redfish.messages.search_message(refused, "Base", "PropertyUnknown")
    names_it = said is not None and said["MessageArgs"] == ["Colour"]
    report.claim(names_it, f"{way}: which property is unknown, got {refused.text}")
    gone = client.delete(where)
    report.claim(gone.status == 204, f"{way}: 204 for a deletion, got {gone.status} {gone.text}")
    gone = client.get(where)
    report.claim(gone.status == 404, f"{way}: nothing is left, got {gone.status}")


def is_refused(place, user, password):
    """Whether nobody logs in by this name and password."""
    client = redfish.redfish_client(place.https, user, password, cafile=str(place.certificate))
    try:
        client.login(auth="session")
    except redfish.rest.v1.InvalidCredentialsError:
        return True
    client.logout()
    return False


def check(place, report):
    """All ways, one after another."""
    for way in (place.local, place.unix):
        client = redfish.redfish_client(way, max_retry=0)
        reads(report, way, place, client)
        changes(report, way, client)
    for how in ("session", "basic"):
        client = redfish.redfish_client(
            place.https, place.user, place.password, cafile=str(place.certificate), max_retry=0
        )
        client.login(auth=how)
        reads(report, how, place, client)
        changes(report, how, client)
        client.logout()
    report.claim(is_refused(place, place.user, "not this"), "a wrong password is refused")
