// How long a drive's requests took: the daemon's counts by interval, as a picture and a table show
// them. Pure.
//
// Interval n holds times above 2^(n-1) and up to 2^n microseconds; 0 is up to one, and the last has
// no end.

import { latency } from './format';
import type { DriveTimes } from './redfish';

/** An interval that is shown. */
export interface Interval {
  /** Its upper end in words. */
  name: string;
  reads: number;
  writes: number;
}

/** The upper end of an interval, in nanoseconds; nothing for the last. */
function end(at: number, intervals: number): number | null {
  return at + 1 < intervals ? 1000 * 2 ** at : null;
}

/** Intervals from the first that holds something to the last. */
export function intervals(reads?: DriveTimes, writes?: DriveTimes): Interval[] {
  const all = Math.max(reads?.Latencies.length ?? 0, writes?.Latencies.length ?? 0);
  const rows = Array.from({ length: all }, (_, at): Interval => {
    const most = end(at, all);
    return {
      name: most === null ? `> ${latency(1000 * 2 ** (at - 1))}` : `≤ ${latency(most)}`,
      reads: reads?.Latencies[at] ?? 0,
      writes: writes?.Latencies[at] ?? 0,
    };
  });
  const holds = (row: Interval) => row.reads + row.writes > 0;
  const first = rows.findIndex(holds);
  return first < 0 ? [] : rows.slice(first, rows.length - [...rows].reverse().findIndex(holds));
}

/** Within which time a share of the requests was done: the end of the interval that it is in. */
export function within(share: number, times: DriveTimes): string {
  const all = times.Latencies;
  const sum = all.reduce((before, own) => before + own, 0);
  if (sum === 0) return '–';
  let below = 0;
  const at = all.findIndex((own) => (below += own) >= share * sum);
  const most = end(at, all.length);
  return most === null ? `over ${latency(1000 * 2 ** (at - 1))}` : latency(most);
}

/** The mean, in nanoseconds. */
export function mean(times: DriveTimes): number | null {
  return times.Timed > 0 ? times.Nanoseconds / times.Timed : null;
}
