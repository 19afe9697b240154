import { render } from 'svelte/server';
import { expect, test } from 'vitest';
import type { Pool, Unreadable } from '../src/lib/redfish';
import { byVolume, reason } from '../src/lib/unreadable';
import Part from '../src/parts/Unreadable.svelte';

function pool(name: string, ranges: [string, number, number, string][]): Pool {
  const list: Unreadable[] = ranges.map(([volume, offset, length, why]) => ({
    Volume: volume, OffsetBytes: offset, LengthBytes: length, Reason: why,
  }));
  return {
    '@odata.id': `/pools/${name}`, Id: name, Name: name,
    Oem: {
      Palisade: {
        Level: '5', State: 'Degraded', StripSizeBytes: 65536, BlockSizeBytes: 512, Epoch: 1,
        Jobs: [], Slots: [], Unreadable: list,
      },
    },
  };
}

const text = (html: string) => html.replace(/<!--.*?-->|<[^>]*>/g, ' ').replace(/\s+/g, ' ');

test('ranges are gathered by volume, also of one name in two arrays', () => {
  const found = byVolume([
    pool('tank', [['a', 0, 512, 'Media'], ['b', 512, 1024, 'Rebuild'], ['a', 4096, 512, 'Crash']]),
    pool('fine', []),
    pool('pond', [['a', 0, 4096, 'Media']]),
  ]);
  const short = found.map((own) => [own.pool.Name, own.name, own.ranges.length, own.bytes]);
  expect(short).toEqual([['tank', 'a', 2, 1024], ['tank', 'b', 1, 1024], ['pond', 'a', 1, 4096]]);
  expect(found[0]!.actions.length).toBe(2);
});

test('each reason says why and what to do, and what is not known is shown as it is', () => {
  const words = ['Media', 'Rebuild', 'Resync', 'Write', 'Crash'];
  expect(new Set(words.map((word) => reason(word).text)).size).toBe(words.length);
  expect(words.every((word) => reason(word).action.includes('anew'))).toBe(true);
  expect(reason('Meteor').text).toBe('Meteor');
});

test('a page shows how much, each range, why, and what helps', () => {
  const all = byVolume([pool('tank', [['<b>a', 8192, 512, 'Media'], ['<b>a', 65536, 1536, 'Write']])]);
  const { body } = render(Part, { props: { all } });
  expect(body).not.toContain('<b>a');
  const shown = text(body);
  for (const value of ['2 ranges', '2 KiB can’t be read', '8192', '512', '65536', '1536']) {
    expect(shown).toContain(value);
  }
  for (const word of ['Media', 'Write']) {
    expect(shown).toContain(reason(word).text);
    expect(shown).toContain(reason(word).action);
  }
});

test('of a full list the first are shown, and where the others are', () => {
  const many = Array.from({ length: 203 }, (_, n): [string, number, number, string] => ['a', n * 8192, 512, 'Media']);
  const { body } = render(Part, { props: { all: byVolume([pool('tank', many)]) } });
  expect(body.match(/<tr>|<tr /g)?.length).toBe(201);
  expect(text(body)).toContain('and 3 more ranges');
  expect(body).toContain('palisade array show tank --json');
});
