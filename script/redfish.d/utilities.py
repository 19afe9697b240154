"""DMTF's command line tools, `redfish_utilities`: inventory, accounts, logs, what the manager and
its certificate are, and requests of any kind."""

import json
import pathlib
import re
import subprocess
import sys

from daemon import LIMIT

STORAGE = "/redfish/v1/Systems/local/Storage/palisade"
MIB = 1 << 20


class Tools:
    """The tools, with a user that they log in as."""

    def __init__(self, place, report, user=None, password=None):
        self.place, self.report = place, report
        self.user, self.password = user or place.user, password or place.password

    def run(self, tool, *words, refused=False):
        """What a tool prints; counts whether it ends as it should: `refused` if nobody may log in
        with this name and password."""
        program = pathlib.Path(sys.executable).with_name(f"{tool}.py")
        command = [program, "--user", self.user, "--password", self.password]
        command += ["--rhost", self.place.https, *words]
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=LIMIT
        )
        said = f"{tool} {' '.join(words)}: status {done.returncode}, {done.stdout}{done.stderr}"
        self.report.claim((done.returncode != 0) == refused, said)
        if refused:
            self.report.claim("InvalidCredentialsError" in done.stderr, said)
        return done.stdout

    def ask(self, method, path, body=None):
        """The answer to a request."""
        words = ["--method", method, "--request", path]
        words += ["--body", json.dumps(body)] if body is not None else []
        text = self.run("rf_raw_request", *words)
        return json.loads(text) if text.startswith("{") else text.strip()


def inventory(tools):
    """All drives are listed, each once."""
    text = tools.run("rf_sys_inventory", "--details")
    drives = tools.place.daemon.ask("drive", "list")["drives"]
    serials = [drive["serial"] for drive in drives if drive["serial"]]
    # One serial number may begin as another one does.
    found = {serial: re.findall(re.escape(serial) + r"(?!\w)", text) for serial in serials}
    missing = [serial for serial in serials if len(found[serial]) != 1]
    tools.report.claim(serials and not missing, f"{missing} once each in {text}")


def accounts(tools):
    """An account is made, used, changed and deleted."""
    tools.run("rf_accounts", "--add", "visitor", "Ohv0eiph-Quee", "ReadOnly")
    visitor = Tools(tools.place, tools.report, "visitor", "Ohv0eiph-Quee")
    visitor.run("rf_sensor_list")
    pool = tools.ask("GET", f"{STORAGE}/StoragePools")["Members"][0]["@odata.id"]
    refused = visitor.ask("DELETE", pool)
    told = [each["MessageId"] for each in refused["error"]["@Message.ExtendedInfo"]]
    is_so = [each.rsplit(".", 1)[-1] for each in told] == ["InsufficientPrivilege"]
    tools.report.claim(is_so, f"a visitor deletes nothing, got {refused}")
    tools.run("rf_accounts", "--setrole", "visitor", "Operator")
    tools.run("rf_accounts", "--setpassword", "visitor", "Aiz7uPah_doo9")
    visitor.run("rf_accounts", refused=True)
    visitor.password = "Aiz7uPah_doo9"
    tools.run("rf_accounts", "--disable", "visitor")
    visitor.run("rf_accounts", refused=True)
    tools.run("rf_accounts", "--enable", "visitor")
    visitor.run("rf_sensor_list")
    text = tools.run("rf_accounts")
    tools.report.claim("visitor" in text and "Operator" in text, f"an Operator, visitor, in {text}")
    tools.run("rf_accounts", "--delete", "visitor")
    text = tools.run("rf_accounts")
    tools.report.claim("visitor" not in text and tools.user in text, f"no visitor in {text}")


def requests(tools):
    """An array and a volume by requests that a person writes."""
    paths = tools.place.drives.take(2)
    found = tools.ask("GET", "/redfish/v1/Chassis/local/Drives?$expand=.")
    links = [
        {"@odata.id": drive["@odata.id"]} for drive in found["Members"] if drive["Name"] in paths
    ]
    body = {
        "Name": "asked",
        "SupportedRAIDTypes": ["RAID1"],
        "CapacitySources": [{"ProvidingDrives": {"Members": links}}],
    }
    array = tools.ask("POST", f"{STORAGE}/StoragePools", body)
    pool = {"@odata.id": array["@odata.id"]}
    body = {
        "Name": "v",
        "CapacityBytes": MIB,
        "CapacitySources": [{"ProvidingPools": {"Members": [pool]}}],
    }
    volume = tools.ask("POST", f"{STORAGE}/Volumes", body)["@odata.id"]
    volume = tools.ask("PATCH", volume, {"CapacityBytes": 2 * MIB})
    tools.report.claim(volume["CapacityBytes"] == 2 * MIB, f"two MiB, got {volume}")
    for made in (volume, array):
        said = tools.ask("DELETE", made["@odata.id"])
        tools.report.claim(said == "No response body", f"a deletion, got {said}")


def manager(tools):
    """The manager tells of itself, of its log and its certificate."""
    text = tools.run("rf_manager_config", "info")
    tools.report.claim("palisade" in text, f"the manager in {text}")
    text = tools.run("rf_manager_config", "getprotocol")
    tools.report.claim("HTTPS" in text, f"HTTPS in {text}")
    text = tools.run("rf_certificates", "info")
    tools.report.claim("palisade" in text.lower(), f"our certificate in {text}")
    text = tools.run("rf_logs", "--manager", "palisade", "--log", "Audit", "--details")
    tools.report.claim("StoragePools" in text, f"changes in {text}")


def check(place, report):
    """All tools, over HTTPS."""
    tools = Tools(place, report)
    inventory(tools)
    accounts(tools)
    requests(tools)
    manager(tools)
