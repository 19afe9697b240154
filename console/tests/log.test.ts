import { expect, test } from 'vitest';
import { withNewest, withOlder } from '../src/lib/log';
import type { LogEntry } from '../src/lib/redfish';

const line = (id: number): LogEntry => ({
  '@odata.id': `/log/${id}`,
  Id: String(id),
  Name: `line ${id}`,
  Created: new Date(1e12 + Math.floor(id / 3) * 1000).toISOString(),
  Message: '',
});
/** Lines from one number down to another. */
const lines = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, at) => line(from - at));
const ids = (all: LogEntry[]) => all.map((own) => Number(own.Id));

test('lines that came while older ones are read push none out, and are there once', () => {
  let all = withNewest([], lines(300, 201));
  all = withOlder(all, lines(200, 1));
  all = withNewest(all, lines(305, 206));
  // The page after so many lines overlaps with what is known.
  all = withOlder(all, lines(5, 1));
  expect(ids(all)).toEqual(ids(lines(305, 1)));
});

test('where more came than a page holds, the list begins anew', () => {
  const all = withNewest(lines(100, 1), lines(400, 301));
  expect(ids(all)).toEqual(ids(lines(400, 301)));
});
