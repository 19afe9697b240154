// From the daemon's reports, which hold totals, to values a second. Pure.
//
// States of a second: open (reports of its time come in) → closed (a point is made of what changed).
// What grew between two points is shared out over the time between them: a second that was missed
// is not taken for one in which nothing was asked.

import type { MetricValue, PastSeries } from './redfish';

/** What one volume, or one slot of an array, was asked in all. */
export interface Totals {
  reads: number;
  writes: number;
  readBytes: number;
  writeBytes: number;
  readTime: number;
  writeTime: number;
}

export const ZERO: Totals = {
  reads: 0,
  writes: 0,
  readBytes: 0,
  writeBytes: 0,
  readTime: 0,
  writeTime: 0,
};

const FIELDS: Record<string, keyof Totals> = {
  VolumeReads: 'reads',
  VolumeWrites: 'writes',
  VolumeReadBytes: 'readBytes',
  VolumeWriteBytes: 'writeBytes',
  VolumeReadTime: 'readTime',
  VolumeWriteTime: 'writeTime',
  DriveReads: 'reads',
  DriveWrites: 'writes',
  DriveReadBytes: 'readBytes',
  DriveWriteBytes: 'writeBytes',
};

/**
 * The values of a second, or of a longer interval of the past. Latencies are means in nanoseconds;
 * none where nothing was done. In the past there are gaps, in which nobody looked.
 */
export interface Point {
  /** Seconds since 1970. */
  at: number;
  reads: number | null;
  writes: number | null;
  readBytes: number | null;
  writeBytes: number | null;
  readLatency: number | null;
  writeLatency: number | null;
}

/** Of what a value is: a volume's identifier, or an array's and a slot's number. */
export function subjectOf(property: string): string | null {
  const volume = /\/Volumes\/([^/#]+)\/Metrics#/.exec(property);
  if (volume) return `volume:${decodeURIComponent(volume[1]!)}`;
  const slot = /\/StoragePools\/([^/#]+)#\/Oem\/Palisade\/DriveRequests\/(\d+)\//.exec(property);
  if (slot) return `slot:${decodeURIComponent(slot[1]!)}:${slot[2]}`;
  return null;
}

/** Takes values into the totals of their subjects. */
export function absorb(totals: Map<string, Totals>, values: MetricValue[]): void {
  for (const value of values) {
    const field = FIELDS[value.MetricId ?? ''];
    if (!field || !value.MetricProperty) continue;
    const subject = subjectOf(value.MetricProperty);
    const amount = Number(value.MetricValue);
    if (!subject || !Number.isFinite(amount)) continue;
    let own = totals.get(subject);
    if (!own) totals.set(subject, (own = { ...ZERO }));
    own[field] = amount;
  }
}

/** Two accounts of the same counters, which only grow: each value is that of the later account. */
export function highest(a: Map<string, Totals>, b: Map<string, Totals>): Map<string, Totals> {
  const all = new Map([...a].map(([subject, own]) => [subject, { ...own }]));
  for (const [subject, other] of b) {
    const own = all.get(subject) ?? { ...ZERO };
    for (const field of Object.keys(own) as (keyof Totals)[]) own[field] = Math.max(own[field], other[field]);
    all.set(subject, own);
  }
  return all;
}

/** The sum of all volumes. */
export function sum(totals: Map<string, Totals>, kind = 'volume:'): Totals {
  const all = { ...ZERO };
  for (const [subject, own] of totals) {
    if (!subject.startsWith(kind)) continue;
    for (const field of Object.keys(all) as (keyof Totals)[]) all[field] += own[field];
  }
  return all;
}

/** What changed between two moments. A counter that fell begins anew: the daemon started. */
export function point(at: number, before: Totals, now: Totals, seconds = 1): Point {
  const grown = (field: keyof Totals) => Math.max(0, now[field] - before[field]) / seconds;
  const mean = (time: number, many: number) => (many > 0 ? time / many : null);
  const [reads, writes] = [grown('reads'), grown('writes')];
  return {
    at,
    reads,
    writes,
    readBytes: grown('readBytes'),
    writeBytes: grown('writeBytes'),
    readLatency: mean(grown('readTime'), reads),
    writeLatency: mean(grown('writeTime'), writes),
  };
}

/** Points of the last ten minutes, one for each second. */
export class Series {
  points: Point[] = [];
  #before: Totals | null = null;
  #last = 0;

  constructor(private readonly most = 600) {}

  /** Closes a second: the totals are of this time. The first only begins the series. */
  close(at: number, totals: Totals): void {
    const before = this.#before;
    if (before !== null && at - this.#last < 0.2) return;
    if (before !== null) {
      this.points.push(point(at, before, totals, at - this.#last));
      if (this.points.length > this.most) this.points.splice(0, this.points.length - this.most);
    }
    this.#before = { ...totals };
    this.#last = at;
  }

  /** Begins anew: what comes next can't be compared with what was. */
  restart(): void {
    this.#before = null;
  }
}

/** Points of the past, as a report of it has them: latencies there are microseconds. */
export function past(all: PastSeries[]): { points: Point[]; temperatures: (number | null)[] } {
  const of = (metric: string) => all.find((own) => own.MetricId === metric);
  const first = of('ReadRate') ?? all[0];
  if (!first) return { points: [], temperatures: [] };
  const begin = Date.parse(first.StartTime) / 1000;
  const value = (metric: string, at: number) => of(metric)?.Values[at] ?? null;
  const points: Point[] = [];
  const temperatures: (number | null)[] = [];
  const time = (metric: string, at: number) => {
    const own = value(metric, at);
    return own === null ? null : own * 1000;
  };
  first.Values.forEach((reads, at) => {
    points.push({
      at: begin + at * first.StepSeconds,
      reads,
      writes: value('WriteRate', at),
      readBytes: value('ReadBandwidth', at),
      writeBytes: value('WriteBandwidth', at),
      readLatency: time('ReadLatency', at),
      writeLatency: time('WriteLatency', at),
    });
    temperatures.push(value('Temperature', at));
  });
  return { points, temperatures };
}

/** What was, and behind it what came since. */
export function joined(before: Point[], since: Point[], most = 600): Point[] {
  const last = before.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
  return [...before, ...since.filter((own) => own.at > last + 0.5)].slice(-most);
}

/** Now, mean and most of a row of values. */
export function summary(values: (number | null)[]): { now: number | null; mean: number | null; most: number | null } {
  const known = values.filter((value): value is number => value !== null);
  if (known.length === 0) return { now: null, mean: null, most: null };
  const total = known.reduce((all, value) => all + value, 0);
  return {
    now: values.at(-1) ?? null,
    mean: total / known.length,
    most: known.reduce((most, value) => Math.max(most, value), 0),
  };
}
