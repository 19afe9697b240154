import { expect, test } from 'vitest';
import { ago, bytes, count, decimalBytes, duration, latency, middle, parseSize, percent, rate, time } from '../src/lib/format';

test.each([
  [0, '0 B'], [1, '1 B'], [1023, '1023 B'], [1024, '1 KiB'], [1536, '1.5 KiB'], [1048575, '1 MiB'],
  [2 ** 30, '1 GiB'], [12_884_901_888, '12 GiB'], [2 ** 60, '1 EiB'], [2 ** 70, '1024 EiB'],
  [null, '–'], [undefined, '–'], [Number.NaN, '–'],
])('%s bytes are %s', (value, text) => expect(bytes(value)).toBe(text));

test.each([
  [0, '0'], [999, '999'], [999.6, '1k'], [1000, '1k'], [1234, '1.23k'], [12_345, '12.3k'], [999_999, '1M'],
  [1.5e9, '1.5G'], [0.25, '0.25'], [null, '–'],
])('%s as a count is %s', (value, text) => expect(count(value)).toBe(text));

test.each([[15_360_950_534_144, '15.4 TB'], [2_147_483_648, '2.15 GB'], [512, '512 B'], [null, '–']])(
  'a drive of %s is %s',
  (value, text) => expect(decimalBytes(value)).toBe(text),
);

test.each([[0, '0 µs'], [1500, '1.5 µs'], [999_000, '999 µs'], [2_810_000, '2.81 ms'], [1.2e9, '1.2 s'], [null, '–']])(
  '%s nanoseconds are %s',
  (value, text) => expect(latency(value)).toBe(text),
);

test.each([
  [0, '0 s'], [59, '59 s'], [60, '1 min'], [61, '1 min 1 s'], [3600, '1 h'], [12_000, '3 h 20 min'],
  [90_000, '1 d 1 h'], [3601, '1 h'], [-1, '–'], [null, '–'],
])('%s seconds are %s', (value, text) => expect(duration(value)).toBe(text));

test.each([[0, 'just now'], [4000, 'just now'], [59_000, '59 s ago'], [120_000, '2 min ago'], [7.3e6, '2 h ago'], [2e8, '2 d ago']])(
  '%s ms before is %s',
  (before, text) => expect(ago(1e12 - before, 1e12)).toBe(text),
);

test.each([
  ['20G', 20 * 2 ** 30], ['1.5 TiB', 1.5 * 2 ** 40], ['512', 512], ['10 mb', 10 * 2 ** 20], [' 1k ', 1024],
  ['', null], ['G', null], ['-1G', null], ['0', null], ['1e3', null], ['20 G B', null], ['99999999P', null],
])('the size %j is %s', (text, value) => expect(parseSize(text)).toBe(value));

test('what is not done is never 100 %', () => {
  expect(percent(0, 0)).toBe(0);
  expect(percent(9999, 10_000)).toBe(99.9);
  expect(percent(10, 10)).toBe(100);
  expect(percent(20, 10)).toBe(100);
});

test('times, rates and long names', () => {
  expect(time('nonsense')).toBe('–');
  expect(time('2026-11-25T18:12:27Z')).toMatch(/^2026-11-2\d \d\d:\d\d:27$/);
  expect(rate(1536)).toBe('1.5 KiB/s');
  expect(middle('abcdefghij', 5)).toBe('ab…ij');
  expect(middle('short', 5)).toBe('short');
});
