import { beforeAll, expect, test } from 'vitest';
import type { Told } from '../src/lib/leader';
import { read } from '../src/lib/stream';

beforeAll(() => {
  // The wait for the network: what a page has of itself.
  Object.assign(globalThis, { addEventListener: () => {}, removeEventListener: () => {} });
});

const EVENT = 'id: 8\ndata: {"Events":[]}\n\n';
const header = (init: RequestInit | undefined, name: string) =>
  (init?.headers as Record<string, string>)[name];

/** Reads streams that the daemon answers with in turn; behind the last of them the page is closed. */
async function run(
  after: string | null,
  tokens: string[],
  ...answers: Response[]
): Promise<{ told: Told[]; asked: (string | undefined)[]; expired: (string | null)[] }> {
  const end = new AbortController();
  const told: Told[] = [];
  const asked: (string | undefined)[] = [];
  const expired: (string | null)[] = [];
  const source = {
    headers: (): Record<string, string> => ({ 'X-Auth-Token': tokens[0] ?? '' }),
    expired: (token: string | null) => {
      expired.push(token);
      if (tokens.length > 1) tokens.shift();
    },
  };
  await read(source, end.signal, (own) => told.push(own), after, async (_, init) => {
    asked.push(header(init, 'Last-Event-ID'));
    const answer = answers.shift();
    if (answers.length === 0) setTimeout(() => end.abort(), 0);
    if (!answer) throw new Error('nothing left');
    return answer;
  });
  return { told, asked, expired };
}

test('without a last event something may have been missed, and all are told', async () => {
  const { told, asked } = await run(null, ['t'], new Response(`:\nid: 7\n\n${EVENT}`));
  expect(asked[0]).toBeUndefined();
  expect(told.slice(0, 3)).toEqual([
    { kind: 'state', link: 'live', id: null, missed: true },
    { kind: 'data', data: '{"Events":[]}', id: '8' },
    { kind: 'state', link: 'live', id: '8' },
  ]);
});

test('with one the daemon is asked for what came since', async () => {
  const { told, asked } = await run('7', ['t'], new Response(EVENT));
  expect(asked[0]).toBe('7');
  expect(told[0]).toEqual({ kind: 'state', link: 'live', id: '7', missed: false });
});

test('a comment moves the last event of all tabs', async () => {
  const { told } = await run('7', ['t'], new Response(':\nid: 9\n\n'));
  expect(told[1]).toEqual({ kind: 'state', link: 'live', id: '9' });
});

test('a session that has ended ends the stream, and no other', async () => {
  const one = await run(null, ['old'], new Response('', { status: 401 }));
  expect(one.expired).toEqual(['old']);
  expect(one.asked.length).toBe(1);
});

test('with a newer session the stream goes on', { timeout: 10_000 }, async () => {
  const refused = new Response('', { status: 401 });
  const both = await run(null, ['old', 'new'], refused, new Response(EVENT));
  expect(both.expired).toEqual(['old']);
  expect(both.asked.length).toBe(2);
  expect(both.told.some((own) => own.kind === 'data')).toBe(true);
});
