// Tabs that are told what a test says, whatever the daemon has.
import assert from 'node:assert/strict';

/** A tab at a page that is told `answer(path)` of what is read under a URI; what it asks to be changed
 * there is kept, and done in word only. A plan of it tells what is lost. */
export async function toldOf(world, role, { base, at, answer, lost = [] }) {
  const tab = await world.tab();
  const asked = [];
  const Plan = { Steps: ['do it'], Lost: lost, Drives: [] };
  const planned = { Plan, Token: 'token', Expires: '2100-01-01T00:00:00Z' };
  await tab.page.context().route((url) => url.pathname.startsWith(base), (route) => {
    const own = route.request();
    const path = new URL(own.url()).pathname.slice(base.length);
    if (own.method() === 'GET') return route.fulfill({ json: answer(path) });
    const isPlan = own.headers()['palisade-plan'] !== undefined;
    asked.push({ method: own.method(), path, body: own.postDataJSON(), isPlan });
    return route.fulfill({ json: isPlan ? planned : {} });
  });
  await tab.logIn(world.users[role], at);
  return { tab, asked, region: (name) => tab.page.getByRole('region', { name, exact: true }) };
}

/** The last thing that was asked for, as a plan and then in earnest. */
export async function done(asked, tab) {
  await tab.page.getByRole('dialog').waitFor({ state: 'detached' });
  const [planned, own] = asked.splice(0).filter((one) => one.method !== 'GET');
  assert.deepEqual({ ...own, isPlan: true }, planned, 'what was shown is what is done');
  const { isPlan: _, ...rest } = own;
  return rest;
}
