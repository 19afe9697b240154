"""DMTF's use case checkers: accounts are managed, and queries answered, as their clients do it."""

import logging

import redfish
from redfish_use_case_checkers import account_management, logger, query_parameters
from redfish_use_case_checkers.system_under_test import SystemUnderTest

from report import FAIL, PASS, UNTESTED, WARN

WORDS = {"PASS": PASS, "FAIL": FAIL, "WARN": WARN, "SKIP": UNTESTED}
# Warnings and what is not tested: what the checkers say, and why it is so.
MEANT = {
    (UNTESTED, r"already enabled by the service"): "an account is enabled when it is made",
    (UNTESTED, r"does not require a password change"): (
        "an account is made with the password that its user is given"
    ),
}


def check(place, report):
    """Runs the two that fit; the others switch machines on and off."""
    log = place.logs("use-cases") / "log"
    logger.logger = redfish.redfish_logger(str(log), "%(levelname)s - %(message)s", logging.DEBUG)
    service = SystemUnderTest(place.https, place.user, place.password, False)
    for each in (account_management, query_parameters):
        each.use_cases(service)
    service.logout()
    for category in service._results:  # pylint: disable=protected-access
        for test in category["Tests"]:
            for result in test["Results"]:
                where = f"{category['Category']}, {test['Name']}, {result['Operation']}"
                report.add(WORDS[result["Result"]], where, result["Message"])
