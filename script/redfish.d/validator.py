"""DMTF's service validator without its reports for people, which take it longer than all that it
checks. Its log has each finding. Called by service.py."""

import sys

from redfish_service_validator import console_scripts, report

report.html_report = report.xlsx_report = lambda *_: None
sys.exit(console_scripts.main())
