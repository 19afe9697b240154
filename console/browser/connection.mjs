// What happens to the connection: many tabs, a daemon that dies, a session that ends, somebody else
// who changes the same, a name that is HTML.
import assert from 'node:assert/strict';
import { HTML_NAME } from './daemon.mjs';

const TABS = 8;

/** A volume of the first array that is whole; what it takes to delete it again. */
async function volumeOf(world, name) {
  const pools = await world.api.all('Systems/local/Storage/palisade/StoragePools');
  const pool = pools.find((own) => own.Oem.Palisade.State === 'Optimal');
  return world.api.post('Systems/local/Storage/palisade/Volumes', {
    Name: name,
    CapacityBytes: 4 << 20,
    CapacitySources: [{ ProvidingPools: { Members: [{ '@odata.id': pool['@odata.id'] }] } }],
  });
}

/** Over HTTP/1.1 a browser has six connections to a server: eight tabs share one stream. */
async function eightTabsAreLive(world) {
  const first = await world.tab();
  const tabs = [first];
  await first.logIn(world.users.ReadOnly, '/events');
  while (tabs.length < TABS) {
    const tab = world.keep(await first.beside());
    await tab.logIn(world.users.ReadOnly, '/events');
    tabs.push(tab);
  }
  const seen = (name) => Promise.all(tabs.map((tab) => tab.page.getByText(name).first().waitFor()));
  const volume = await volumeOf(world, 'for-eight-tabs');
  await seen('for-eight-tabs');
  // The tab that reads the stream is closed: another one goes on.
  await tabs.shift().page.close();
  await world.api.ask('DELETE', volume['@odata.id']);
  const second = await volumeOf(world, 'for-seven-tabs');
  await seen('for-seven-tabs');
  await world.api.ask('DELETE', second['@odata.id']);
}

/** How the first panel is painted. */
const paint = (tab) =>
  tab.page.locator('main .panel').first().evaluate((node) => {
    const { color, filter } = getComputedStyle(node);
    return { color, filter };
  });

async function daemonIsKilledAndComesBack(world) {
  const tab = await world.tab();
  const { page } = tab;
  await tab.logIn(world.users.Operator, '/shelf');
  const slots = page.getByRole('listitem', { name: /^Slot \d+: / });
  await slots.first().waitFor();
  const before = await slots.count();
  const fresh = await paint(tab);
  assert.equal(fresh.filter, 'none');
  tab.isForgiving = true;
  await world.daemon.kill();
  await page.getByRole('alert').filter({ hasText: 'Connection lost' }).waitFor();
  const old = await paint(tab);
  assert(old.filter.includes('grayscale') && old.color !== fresh.color, `greyed: ${old.filter} ${old.color}`);
  assert.equal(await slots.count(), before, 'old values stay');
  await tab.look('connection-lost');
  await tab.axe('connection-lost');
  await world.daemon.start();
  await page.getByRole('alert').filter({ hasText: 'Connection lost' }).waitFor({ state: 'detached' });
  await tab.live();
  assert.deepEqual(await paint(tab), fresh);
  assert.equal(await page.getByLabel('User', { exact: true }).count(), 0, 'the session goes on');
  tab.isForgiving = false;
  // What happens from now on is seen.
  await tab.go('/events');
  const volume = await volumeOf(world, 'after-the-crash');
  await page.getByText('after-the-crash').first().waitFor();
  await world.api.ask('DELETE', volume['@odata.id']);
}

async function expiredSessionComesBackToItsPage(world) {
  const tab = await world.tab();
  const { page } = tab;
  await tab.logIn(world.users.Operator);
  await tab.go('/audit');
  tab.isForgiving = true;
  await world.api.expire(world.users.Operator.user);
  await page.getByText('Your session has ended').waitFor();
  await tab.look('session-ended');
  tab.isForgiving = false;
  await tab.enter(world.users.Operator);
  await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
}

async function twoPeopleChangeOneThing(world) {
  const volume = await volumeOf(world, 'contended');
  const tab = await world.tab();
  const { page } = tab;
  await tab.logIn(world.users.Operator, '/volumes');
  await page.getByRole('button', { name: /^Resize .*\/contended$/ }).click();
  await page.getByLabel('New size').fill('8M');
  await tab.button('Show the plan').click();
  await page.getByRole('heading', { name: 'What will be done' }).waitFor();
  await world.api.ask('PATCH', volume['@odata.id'], { CapacityBytes: 12 << 20 });
  await tab.refused(412, () => tab.button('Resize').click());
  await page.getByRole('alert').filter({ hasText: 'Somebody changed this' }).waitFor();
  const now = await world.api.get(volume['@odata.id']);
  assert.equal(now.CapacityBytes, 12 << 20, 'nothing was done');
  await world.api.ask('DELETE', volume['@odata.id']);
}

/** The tab notes a dialog that is opened; an element would be there. */
async function nameThatIsHtmlIsText(world) {
  const tab = await world.tab();
  const { page } = tab;
  await tab.logIn(world.users.Administrator, '/shelf');
  const named = page.getByRole('rowheader').filter({ hasText: HTML_NAME });
  await named.waitFor();
  await named.getByRole('link').click();
  await page.getByRole('heading', { name: HTML_NAME, level: 1 }).waitFor();
  await tab.look('html-name');
  assert.equal(await page.locator('main :is(img, b)').count(), 0, 'no element was made of it');
}

for (const own of [daemonIsKilledAndComesBack, nameThatIsHtmlIsText]) own.isOwn = true;

export const tests = {
  eightTabsAreLive,
  expiredSessionComesBackToItsPage,
  twoPeopleChangeOneThing,
  nameThatIsHtmlIsText,
  daemonIsKilledAndComesBack,
};
