import { expect, test } from 'vitest';
import { ApiError, Client, errorOf } from '../src/lib/http';

interface Sent {
  uri: string;
  init: RequestInit;
}

/** A client whose daemon answers these, in turn. */
function client(...answers: (Response | Error)[]): { client: Client; sent: Sent[] } {
  const sent: Sent[] = [];
  const own = new Client(async (uri, init) => {
    sent.push({ uri: String(uri), init: init ?? {} });
    const answer = answers.shift();
    if (!answer || answer instanceof Error) throw answer ?? new Error('nothing left');
    return answer;
  }, async () => {});
  return { client: own, sent };
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(status === 304 || status === 204 ? null : JSON.stringify(body), { status, headers });
const header = (sent: Sent, name: string) => (sent.init.headers as Record<string, string>)[name];

test('the token goes in a header, and no cookie goes', async () => {
  const { client: own, sent } = client(json({}), json({}));
  await own.get('/a');
  own.token = 'secret';
  await own.get('/a');
  expect(header(sent[0]!, 'X-Auth-Token')).toBeUndefined();
  expect(header(sent[1]!, 'X-Auth-Token')).toBe('secret');
  for (const one of sent) {
    expect(header(one, 'X-Requested-With')).toBe('palisade-console');
    expect(one.init.credentials).toBe('omit');
    expect(one.uri).not.toContain('secret');
  }
});

test('what has not changed is the same object', async () => {
  const { client: own, sent } = client(json({ a: 1 }, 200, { ETag: 'W/"1"' }), json(null, 304));
  const first = await own.get('/a');
  expect(await own.get('/a')).toBe(first);
  expect(header(sent[1]!, 'If-None-Match')).toBe('W/"1"');
});

test('a change whose answer is lost is not sent again', async () => {
  const { client: own, sent } = client(new TypeError('gone'), json({}));
  const reached: boolean[] = [];
  own.onReach = (is) => reached.push(is);
  const error = await own.change('DELETE', '/a').catch((own: unknown) => own);
  expect(error).toBeInstanceOf(ApiError);
  expect((error as ApiError).isUnreachable).toBe(true);
  expect((error as ApiError).resolution).toContain('not known whether');
  expect(sent.length).toBe(1);
  expect(reached).toEqual([false]);
});

test('a session that has ended is told once, and forgotten', async () => {
  const { client: own, sent } = client(json({}, 401), json({}, 401));
  let told = 0;
  own.token = 'old';
  own.onExpired = () => (told += 1);
  await own.get('/a').catch(() => {});
  await own.get('/a').catch(() => {});
  expect([told, own.token]).toEqual([1, null]);
  expect(header(sent[1]!, 'X-Auth-Token')).toBeUndefined();
});

test('a collection is read page by page, anew where it changed meanwhile', async () => {
  const page = (tag: string, members: number[], total = 3) =>
    json({ '@odata.etag': tag, Members: members, 'Members@odata.count': total });
  const { client: own, sent } = client(page('1', [1, 2]), page('2', [3]), page('2', [1, 2]), page('2', [4]));
  expect(await own.all('/c', 2)).toEqual([1, 2, 4]);
  expect(sent.map((one) => one.uri)).toEqual([
    '/c?$expand=.&$top=2&$skip=0',
    '/c?$expand=.&$top=2&$skip=2',
    '/c?$expand=.&$top=2&$skip=0',
    '/c?$expand=.&$top=2&$skip=2',
  ]);
});

test('what stands in members is read with them where that is asked for', async () => {
  const { client: own, sent } = client(json({ '@odata.etag': '1', Members: [1], 'Members@odata.count': 1 }));
  expect(await own.all('/c', 2, 3)).toEqual([1]);
  expect(sent[0]?.uri).toBe('/c?$expand=.($levels=3)&$top=2&$skip=0');
});

test('an error has the words of the daemon', () => {
  const info = { MessageId: 'Palisade.1.0.ArrayBusy', Message: 'busy', Resolution: 'wait' };
  const error = errorOf(409, { error: { code: 'x', message: 'y', '@Message.ExtendedInfo': [info] } });
  expect([error.id, error.message, error.resolution, error.planned]).toEqual(['ArrayBusy', 'busy', 'wait', null]);
  expect(errorOf(500, null).message).toBe('The daemon answered 500.');
});

test('somebody else changed it: that is said, and nothing of ETags', () => {
  const info = { MessageId: 'Base.1.19.PreconditionFailed', Message: 'The ETag …', Resolution: 'Try …' };
  const error = errorOf(412, { error: { '@Message.ExtendedInfo': [info] } });
  expect(error.message).toContain('Somebody changed this');
  expect(error.resolution).toContain('Nothing was done');
});

test('a plan that no longer fits comes with the new one', async () => {
  const plan = { Steps: ['s'], Lost: ['l'] };
  const body = { Plan: plan, Token: 't2', Expires: 'e', error: { code: 'Palisade.1.0.PlanChanged', message: 'm' } };
  const { client: own } = client(json(body, 412), json({ Plan: plan, Token: 't', Expires: 'e' }));
  const error = (await own.change('DELETE', '/a').catch((own: unknown) => own)) as ApiError;
  expect(error.planned).toEqual({ plan, token: 't2', expires: 'e' });
  expect((await own.plan('DELETE', '/a')).token).toBe('t');
});

test('a late refusal of an older token does not end the newer session', async () => {
  let answer: (response: Response) => void = () => {};
  const late = new Promise<Response>((resolve) => (answer = resolve));
  const own = new Client(() => late);
  let told = 0;
  own.onExpired = () => (told += 1);
  own.token = 'old';
  const asked = own.get('/a').catch((error: unknown) => error);
  own.token = 'new';
  answer(json({}, 401));
  expect(((await asked) as ApiError).status).toBe(401);
  expect([own.token, told]).toEqual(['new', 0]);
  own.refused('new');
  expect([own.token, told]).toEqual([null, 1]);
});

test('a change that takes long is waited for, whatever becomes of the reads', async () => {
  const { client: own, sent } = client(
    json({}, 202, { Location: '/monitor' }),
    new TypeError('gone'),
    json({}, 503),
    json({}, 202, { Location: '/monitor' }),
    json({ Name: 'made' }, 201, { Location: '/made' }),
  );
  const answer = await own.change('POST', '/a', {});
  expect(answer.body).toEqual({ Name: 'made' });
  expect(answer.location).toBe('/made');
  expect(sent.map((one) => `${one.init.method} ${one.uri}`)).toEqual(['POST /a', ...Array(4).fill('GET /monitor')]);
});

test('of a change whose end is never told it is not said that it is tried again', async () => {
  const { client: own } = client(json({}, 202, { Location: '/monitor' }));
  const error = (await own.change('POST', '/a', {}).catch((own: unknown) => own)) as ApiError;
  expect(error.resolution).toContain('not known whether');
  const { client: refused } = client(json({}, 202, { Location: '/monitor' }), json({}, 409));
  await expect(refused.change('POST', '/a', {})).rejects.toMatchObject({ status: 409 });
});

test('while the connection is lost nothing is sent but reads, and who logs in or out', async () => {
  const { client: own, sent } = client(json({}), json({}));
  own.isLost = () => true;
  await expect(own.change('DELETE', '/a')).rejects.toMatchObject({ resolution: expect.stringContaining('nothing was sent') });
  await expect(own.plan('DELETE', '/a')).rejects.toMatchObject({ status: 0 });
  await own.get('/a');
  await own.change('DELETE', '/redfish/v1/SessionService/Sessions/1');
  expect(sent.map((one) => one.init.method)).toEqual(['GET', 'DELETE']);
});
