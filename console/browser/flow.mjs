// A life: an array, a volume and an export in one go; a drive is lost under load; another takes its
// place. Then all of it is deleted, by names that have to be typed. And a block device of the server.
import assert from 'node:assert/strict';
import { Demo } from './demo.mjs';
import { Load } from './load.mjs';

const ARRAY = 'flow';
const VOLUME = 'data';

/** Confirms the plan that is shown. */
export async function confirm(tab, button, typed = '') {
  const dialog = tab.page.getByRole('dialog');
  await dialog.getByRole('heading', { name: 'What will be done' }).waitFor();
  const act = dialog.getByRole('button', { name: button, exact: true });
  if (typed !== '') {
    assert(await act.isDisabled(), `${button} wants the name typed`);
    await dialog.getByLabel(`Type ${typed} to confirm`).fill(typed);
  }
  await act.click();
}

/** Sends a form on to its plan. */
export const plan = (tab) => tab.button('Show the plan').click();

/**
 * Opens a plan of what is there, and confirms it. Where something happened since the page was read,
 * such as a condition that came or went, nothing is done, and the reader decides again.
 */
export async function decide(tab, open, button, typed) {
  for (;;) {
    await open();
    const isConfirmed = (own) => own.request().headers()['palisade-confirm'] !== undefined;
    const [answer] = await Promise.all([tab.page.waitForResponse(isConfirmed), confirm(tab, button, typed)]);
    if (answer.status() !== 412) return;
    tab.forgive(answer);
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click();
  }
}

/** Array, volume (of all there is, unless a size is said) and export, each of which leads on to the next. */
async function create(tab, drives, size) {
  const { page } = tab;
  await tab.go('/arrays');
  await tab.button('Create array').click();
  await page.getByLabel('Name').fill(ARRAY);
  for (const drive of drives) await page.getByRole('checkbox', { name: drive }).check();
  await page.getByRole('radio', { name: 'RAID 5' }).check();
  await tab.look('flow-array-form');
  await plan(tab);
  await tab.axe('flow-array-plan');
  await confirm(tab, 'Create array');
  await page.getByRole('dialog', { name: 'Create volume' }).waitFor();
  await page.getByLabel('Name').fill(VOLUME);
  if (size) await page.getByLabel('Size').fill(size);
  else await tab.button('All of it').click();
  await plan(tab);
  await confirm(tab, 'Create volume');
  await page.getByRole('dialog', { name: 'Share a volume' }).waitFor();
  await page.getByLabel('Kind').selectOption('NBD');
  await page.getByLabel('Address').fill('127.0.0.1:0');
  await plan(tab);
  await confirm(tab, 'Share');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

/** Four drives that nothing uses: their resources, and how pages name them in short. */
async function free(world) {
  const all = await world.api.all('Chassis/local/Drives');
  const found = all.filter((own) => own.Oem.Palisade.State === 'Free').slice(0, 4);
  assert.equal(found.length, 4, 'four drives are free');
  return found.map((own) => ({ ...own, short: own.Oem.Palisade.Path.split('/').pop() }));
}

/** The bay of the shelf that a drive is in, as people hear it. */
async function bay(tab, drive) {
  const item = tab.page.getByRole('listitem').filter({ has: tab.page.locator(`a[href="/drives/${encodeURIComponent(drive.Id)}"]`) });
  return (await item.getAttribute('aria-label')).replace(/:.*/, '');
}

/** Deletes what was made: each wants its name. */
async function remove(tab) {
  const { page } = tab;
  await tab.go('/exports');
  const shared = page.getByRole('region', { name: /^Export / }).filter({ hasText: `${ARRAY}/${VOLUME}` });
  await decide(tab, () => shared.getByRole('button', { name: /^End export/ }).click(), 'End export');
  await shared.waitFor({ state: 'detached' });
  await tab.go('/volumes');
  await decide(tab, () => tab.button(`Delete ${ARRAY}/${VOLUME}`).click(), 'Delete volume', `${ARRAY}/${VOLUME}`);
  await tab.button(`Delete ${ARRAY}/${VOLUME}`).waitFor({ state: 'detached' });
  await tab.go('/arrays');
  await page.getByRole('link', { name: ARRAY, exact: true }).click();
  await decide(tab, () => tab.button('Delete').click(), 'Delete array', ARRAY);
  await page.getByRole('heading', { name: 'Arrays', level: 1 }).waitFor();
  await page.getByRole('link', { name: ARRAY, exact: true }).waitFor({ state: 'detached' });
}

async function lifeOfAnArray(world) {
  const [one, two, three, spare] = await free(world);
  const tab = await world.tab();
  const { page } = tab;
  await tab.logIn(world.users.Operator, '/shelf');
  const place = await bay(tab, two);
  const slot = (state) => page.getByRole('listitem', { name: `${place}: ${state}`, exact: true });
  await slot('free').waitFor();
  await create(tab, [one, two, three].map((own) => own.short), world.machine ? '64M' : null);
  const [volume] = (await world.api.all('Fabrics/nbd/Connections')).filter((own) => own.Oem.Palisade.Array === ARRAY);
  const uri = volume.Oem.Palisade.URI;
  const load = world.machine ? await world.machine.load(uri) : Load.begin(uri);
  try {
    await tab.go('/shelf');
    await slot('in sync').waitFor();
    await tab.go(`/drives/${encodeURIComponent(two.Id)}`);
    await page.getByRole('table', { name: /^Latency histogram/ }).getByRole('rowheader').first().waitFor();
    await tab.look('flow-latency');
    // Who asks is seen as soon as it is there.
    await tab.go('/exports');
    await page.getByRole('region', { name: /^Export / }).getByText(/an NBD client from 127\.0\.0\.1/).first().waitFor();
    // The load is seen, then the drive goes.
    await tab.go('/');
    await page.getByLabel('Requests a second').locator('.big').filter({ hasText: /[1-9]/ }).waitFor();
    await lose(world, two);
    await tab.go('/alerts');
    const alarm = page.getByRole('alert').filter({ hasText: two.short }).filter({ hasText: /fail/ });
    await alarm.waitFor();
    await tab.look('flow-alarm');
    await tab.go('/shelf');
    // A drive that was pulled out leaves its bay empty.
    await slot(world.machine ? 'empty' : 'failed').waitFor();
    // Two clicks for the drive itself: the plan's button is the second.
    await tab.go('/arrays');
    await page.getByRole('link', { name: ARRAY, exact: true }).click();
    await page.getByText('degraded', { exact: true }).first().waitFor();
    await decide(tab, () => replacement(tab, spare), 'Replace drive');
    await page.getByText('optimal', { exact: true }).first().waitFor();
    const rebuild = page.getByRole('article', { name: `Rebuild of ${ARRAY}` });
    await rebuild.getByText('completed', { exact: true }).waitFor();
    await alarmGone(tab, alarm);
  } finally {
    await load.end();
  }
  await remove(tab);
}

/** On to the plan by which a drive takes the lost one's place. */
async function replacement(tab, spare) {
  await tab.button('Replace drive').click();
  const offered = tab.page.getByRole('radio', { name: spare.short });
  if (await offered.isVisible()) await offered.check();
  await plan(tab);
}

async function alarmGone(tab, alarm) {
  await tab.go('/alerts');
  await alarm.waitFor({ state: 'detached' });
}

/** A drive goes: out of the emulated machine, else out of service, as if it had failed. */
async function lose(world, drive) {
  if (world.machine) return world.machine.unplug(drive.SerialNumber);
  const pools = await world.api.all('Systems/local/Storage/palisade/StoragePools');
  const pool = pools.find((own) => own.Name === ARRAY);
  const slot = pool.Oem.Palisade.Slots.find((own) => own.Drive?.['@odata.id'] === drive['@odata.id']);
  const action = 'Actions/Oem/PalisadeStoragePool.FailDrive';
  await world.api.post(`${pool['@odata.id']}/${action}`, { Slot: slot.Slot });
}

/** The dialog that shares a volume, as a user has it in a tab of theirs: the kinds are these. */
async function share(world, user, kinds) {
  const tab = await world.tab();
  await tab.logIn(user, '/exports');
  await tab.button('Share a volume').click();
  const kind = tab.page.getByLabel('Kind');
  assert.deepEqual(await kind.locator('option').allInnerTexts(), kinds);
  await kind.selectOption(kinds.at(-1));
  return tab;
}

/** An Operator makes a block device of a volume, and ends it; files are for Administrators. */
async function blockDeviceOfTheServer(world) {
  if (!world.daemon.hasServices) return;
  const kinds = ['NVMe/TCP', 'iSCSI', 'Fibre Channel (FCP)', 'Fibre Channel (NVMe)', 'NBD', 'Block device'];
  const ruler = await share(world, world.users.Administrator, [...kinds, 'File']);
  const file = ruler.page.getByLabel('File', { exact: true });
  await file.fill('no/absolute/path');
  assert(await ruler.button('Show the plan').isDisabled(), 'a path is absolute');
  await file.fill('/srv/file');
  assert(await ruler.button('Show the plan').isEnabled(), 'an absolute path is taken');
  await ruler.look('flow-export-file');
  await ruler.axe('flow-export-file');
  const tab = await share(world, world.users.Operator, kinds);
  const { page } = tab;
  await page.getByRole('combobox', { name: 'Volume' }).selectOption('scratch/temporary');
  await tab.look('flow-export-device');
  await tab.axe('flow-export-device');
  await plan(tab);
  await confirm(tab, 'Share');
  const own = page.getByRole('region', { name: /^Export / }).filter({ hasText: '/dev/palisade/scratch/temporary' });
  await own.getByText('served', { exact: true }).waitFor();
  await own.getByText(/^\/dev\/loop\d+$/).waitFor();
  await own.getByText('OK', { exact: true }).waitFor();
  await decide(tab, () => own.getByRole('button', { name: /^End export/ }).click(), 'End export');
  await own.waitFor({ state: 'detached' });
}
blockDeviceOfTheServer.isOwn = true;

/** The same on what people see who try the demo. */
async function lifeOnTheDemo(world) {
  world.demo = await Demo.begin(world.daemon.program);
  const other = await world.beside(world.demo.origin, world.demo);
  await lifeOfAnArray(other);
  await other.leave();
  await other.api.end();
  await world.demo.end();
}
lifeOnTheDemo.isOwn = true;

export const tests = { lifeOfAnArray, blockDeviceOfTheServer, lifeOnTheDemo };
