import { expect, test } from 'vitest';
import { intervals, mean, within } from '../src/lib/latencies';

/** Counts by interval, from the first on; the rest of 26 hold nothing. */
function times(...counts: number[]) {
  const Latencies = [...counts, ...Array<number>(26 - counts.length).fill(0)];
  return { Timed: Latencies.reduce((a, b) => a + b, 0), Nanoseconds: 12_000, Latencies };
}

test('intervals are those from the first that holds something to the last', () => {
  expect(intervals(times(), times())).toEqual([]);
  expect(intervals()).toEqual([]);
  expect(intervals(times(0, 0, 5), times(0, 0, 0, 0, 7))).toEqual([
    { name: '≤ 4 µs', reads: 5, writes: 0 },
    { name: '≤ 8 µs', reads: 0, writes: 0 },
    { name: '≤ 16 µs', reads: 0, writes: 7 },
  ]);
});

test('the last interval has no end', () => {
  const longest = times(...Array<number>(25).fill(0), 3);
  expect(intervals(longest)).toEqual([{ name: '> 16.8 s', reads: 3, writes: 0 }]);
  expect(within(0.5, longest)).toBe('over 16.8 s');
});

test('a share of the requests was done within the end of the interval that it falls in', () => {
  const all = times(50, 0, 49, 0, 0, 0, 0, 0, 0, 0, 1);
  expect([0.5, 0.51, 0.99, 0.999].map((share) => within(share, all))).toEqual(['1 µs', '4 µs', '4 µs', '1.02 ms']);
  expect(within(0.99, times())).toBe('–');
});

test('what was not timed has no mean', () => {
  expect(mean(times(2, 1))).toBe(4_000);
  expect(mean(times())).toBeNull();
});
