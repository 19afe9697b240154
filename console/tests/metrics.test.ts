import { expect, test } from 'vitest';
import { absorb, highest, joined, past, point, Series, subjectOf, sum, summary, ZERO, type Totals } from '../src/lib/metrics';

const VOLUME = '/redfish/v1/Systems/local/Storage/palisade/Volumes/v1/Metrics#/Oem/Palisade/Reads/Done';
const SLOT = '/redfish/v1/Systems/local/Storage/palisade/StoragePools/p1#/Oem/Palisade/DriveRequests/3/Reads';

test('values are of volumes and slots', () => {
  expect(subjectOf(VOLUME)).toBe('volume:v1');
  expect(subjectOf(SLOT)).toBe('slot:p1:3');
  expect(subjectOf('/redfish/v1/Managers/palisade#/Oem/Palisade/CoreTimes/0/Requests')).toBeNull();
});

test('what a report leaves out stays as it was', () => {
  const totals = new Map<string, Totals>();
  absorb(totals, [
    { MetricId: 'VolumeReads', MetricProperty: VOLUME, MetricValue: '10' },
    { MetricId: 'VolumeReadBytes', MetricProperty: VOLUME, MetricValue: '4096' },
    { MetricId: 'DriveReads', MetricProperty: SLOT, MetricValue: '7' },
    { MetricId: 'VolumeReadLatencies', MetricProperty: VOLUME, MetricValue: '1' },
    { MetricId: 'VolumeReads', MetricProperty: VOLUME, MetricValue: 'none' },
    { MetricId: 'VolumeReads' },
  ]);
  absorb(totals, [{ MetricId: 'VolumeReads', MetricProperty: VOLUME, MetricValue: '12' }]);
  expect(totals.get('volume:v1')).toEqual({ ...ZERO, reads: 12, readBytes: 4096 });
  expect(sum(totals).reads).toBe(12);
  expect(sum(totals, 'slot:').reads).toBe(7);
});

test('a point is what grew a second, and a latency is a mean', () => {
  const before = { ...ZERO, reads: 10, readTime: 1000 };
  const own = point(5, before, { ...before, reads: 14, readTime: 9000, writeBytes: 10 }, 2);
  expect(own).toEqual({ at: 5, reads: 2, writes: 0, readBytes: 0, writeBytes: 5, readLatency: 2000, writeLatency: null });
  // The daemon started anew: its counters begin at zero.
  expect(point(6, { ...ZERO, reads: 100 }, { ...ZERO, reads: 3 }).reads).toBe(0);
});

test('a series has a point a second, shares gaps out, and has an end', () => {
  const series = new Series(5);
  series.close(10.7, { ...ZERO, reads: 100 });
  expect(series.points).toEqual([]);
  series.close(11.7, { ...ZERO, reads: 150 });
  // The same second again, from another report.
  series.close(11.7, { ...ZERO, reads: 160 });
  series.close(13.7, { ...ZERO, reads: 250 });
  expect(series.points.map((own) => [own.at, own.reads])).toEqual([[11.7, 50], [13.7, 50]]);
  for (let at = 14; at < 40; at += 1) series.close(at + 0.7, { ...ZERO, reads: 250 });
  expect(series.points.length).toBe(5);
  series.restart();
  series.close(50, { ...ZERO, reads: 9000 });
  series.close(51, { ...ZERO, reads: 9001 });
  expect(series.points.at(-1)?.reads).toBe(1);
});

test('now, mean and most', () => {
  expect(summary([])).toEqual({ now: null, mean: null, most: null });
  expect(summary([1, null, 3])).toEqual({ now: 3, mean: 2, most: 3 });
  expect(summary([1, null])).toEqual({ now: null, mean: 1, most: 1 });
});

test('the past comes as columns, with gaps', () => {
  const series = (MetricId: string, Values: (number | null)[]) => ({ MetricId, StartTime: '2026-11-25T18:00:00Z', StepSeconds: 60, Values });
  const { points, temperatures } = past([
    series('ReadRate', [1, null, 3]), series('ReadLatency', [5, null, null]), series('Temperature', [41, 42, null]),
  ]);
  const begin = Date.parse('2026-11-25T18:00:00Z') / 1000;
  expect(points.map((own) => [own.at - begin, own.reads, own.writes, own.readLatency])).toEqual([
    [0, 1, null, 5000], [60, null, null, null], [120, 3, null, null],
  ]);
  expect(temperatures).toEqual([41, 42, null]);
  expect(past([])).toEqual({ points: [], temperatures: [] });
});

test('the seconds go on where the past ends', () => {
  const at = (own: number) => point(own, ZERO, ZERO);
  const all = joined([at(1), at(2)], [at(1.7), at(2.3), at(3.3)], 3);
  expect(all.map((own) => own.at)).toEqual([1, 2, 3.3]);
  expect(joined([], [at(1), at(2), at(3)], 2).map((own) => own.at)).toEqual([2, 3]);
});

test('of two accounts of the same counters each value is the later one', () => {
  const early = new Map([['volume:a', { ...ZERO, reads: 10, writes: 5 }], ['volume:b', { ...ZERO, reads: 1 }]]);
  const late = new Map([['volume:a', { ...ZERO, reads: 12 }]]);
  const all = highest(late, early);
  expect(all.get('volume:a')).toMatchObject({ reads: 12, writes: 5 });
  expect(all.get('volume:b')).toMatchObject({ reads: 1 });
});
