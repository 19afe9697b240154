// Lines of a log, gathered page by page. Pure.
//
// Invariants: each line is there once; the newest is the first; between two lines that are there none
// is left out that a page would have shown.

import type { LogEntry } from './redfish';

/** So many lines are kept of what came while a page was open. */
const MOST = 5000;

const newer = (a: LogEntry, b: LogEntry) =>
  Date.parse(b.Created ?? '') - Date.parse(a.Created ?? '') || b.Id.localeCompare(a.Id, 'en', { numeric: true });

/** With a page more; older lines go on where the page before them ended. */
export function withOlder(known: LogEntry[], page: LogEntry[]): LogEntry[] {
  const all = new Map([...known, ...page].map((own) => [own['@odata.id'], own]));
  return [...all.values()].sort(newer);
}

/** With the newest page. Where more came than it holds, what was known before stands no longer next to it. */
export function withNewest(known: LogEntry[], page: LogEntry[]): LogEntry[] {
  const names = new Set(known.map((own) => own['@odata.id']));
  const meets = page.some((own) => names.has(own['@odata.id']));
  return meets ? withOlder(known, page).slice(0, MOST) : page;
}
