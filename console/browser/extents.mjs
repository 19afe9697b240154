// The console at its extents: the narrowest and the widest page, nothing at all, very many things, and
// a keyboard alone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Daemon } from './daemon.mjs';
import { paths } from './pages.mjs';
import { nameOf } from './tab.mjs';

const EDGES = [[360, 640], [3840, 2160]];
const TREE = readFileSync(new URL('../../crates/drives/tests/trees/shelf.tree', import.meta.url), 'utf8');
/** As many drives and volumes as an array may have. */
const [DRIVES, VOLUMES] = [64, 256];
/** A volume takes a mebibyte of each drive at least. */
const DRIVE_BYTES = 512 << 20;

/** Looks at the page in the narrowest and the widest form. */
async function atItsEdges(tab, name) {
  for (const [width, height] of EDGES) {
    await tab.page.setViewportSize({ width, height });
    await tab.look(`${name}-${width}`);
    await tab.axe(`${name}-${width}`);
  }
}

async function narrowestAndWidestPages(world) {
  const tab = await world.tab();
  await tab.logIn(world.users.Administrator);
  for (const at of await paths(tab)) {
    await tab.go(at);
    await atItsEdges(tab, `${nameOf(at)}-edge`);
  }
}

/** A daemon of a test's own, which goes with it. */
async function withDaemon(world, drives, test) {
  const daemon = await Daemon.begin(world.daemon.program, TREE, drives, DRIVE_BYTES);
  try {
    const other = await world.beside(daemon.origin, daemon);
    await test(other, daemon);
    await other.leave();
    await other.api.end();
  } finally {
    await daemon.end();
  }
}

/** What pages say where there is nothing, and what to do then. */
const EMPTY = {
  '/': ['No array yet', 'Create an array of free drives'],
  '/shelf': ['No drive is there', 'Plug a drive in'],
  '/arrays': ['No array yet', 'Create one of free drives'],
  '/volumes': ['No volume yet', 'Create an array first'],
  '/exports': ['No volume is shared', 'Create a volume first'],
  '/shares': ['No files are shared', 'Create a volume first'],
  '/ports': ['Nothing listens', 'Share a volume'],
  '/jobs': ['Nothing is under way', 'A scrub is begun on the page of an array'],
};

async function pagesWithNothing(world) {
  await withDaemon(world, 0, async (other) => {
    const tab = await other.tab();
    await tab.logIn(other.users.Administrator);
    for (const [at, texts] of Object.entries(EMPTY)) {
      await tab.go(at);
      for (const text of texts) await tab.page.getByText(text).first().waitFor();
      await tab.look(`${nameOf(at)}-empty`);
      await tab.axe(`${nameOf(at)}-empty`);
    }
    // The flow says what it lacks.
    await tab.go('/arrays');
    await tab.button('Create array').click();
    await tab.page.getByRole('dialog').getByText('No drive is free').waitFor();
  });
}

async function veryManyThings(world) {
  await withDaemon(world, DRIVES, async (other, daemon) => {
    daemon.command(['array', 'create', 'wide', '--level', '6', '--drives', ...daemon.drives.slice(0, DRIVES - 2)]);
    const base = '/redfish/v1/Systems/local/Storage/palisade';
    const [pool] = await other.api.all('Systems/local/Storage/palisade/StoragePools');
    const names = Array.from({ length: VOLUMES }, (_, at) => `volume-${String(at).padStart(3, '0')}`);
    const from = [{ ProvidingPools: { Members: [{ '@odata.id': pool['@odata.id'] }] } }];
    for (const name of names) {
      await other.api.post(`${base}/Volumes`, { Name: name, CapacityBytes: 1 << 20, CapacitySources: from });
    }
    const tab = await other.tab();
    const { page } = tab;
    await tab.logIn(other.users.Administrator);
    await tab.go('/shelf');
    const slots = page.getByRole('listitem', { name: /^Slot \d+: / });
    // Each drive is in its bay, and nowhere else.
    await page.getByRole('listitem', { name: 'Slot 1: in sync', exact: true }).waitFor();
    assert.equal(await slots.count(), DRIVES);
    await page.getByRole('listitem', { name: 'Slot 62: in sync', exact: true }).waitFor();
    await page.getByRole('listitem', { name: 'Slot 64: free', exact: true }).waitFor();
    for (const at of ['/', '/shelf', '/arrays', `/arrays/${pool.Id}`, '/volumes']) {
      await tab.go(at);
      await atItsEdges(tab, `${nameOf(at)}-many`);
    }
    // Each is found: at the end of the list, and by its name.
    await tab.go('/volumes');
    await page.getByRole('searchbox').fill(names.at(-1));
    await page.getByRole('rowheader', { name: names.at(-1) }).waitFor();
    assert.equal(await page.getByRole('rowheader', { name: /^volume-/ }).count(), 1);
  });
}

/** Goes on by the keyboard until something of this role and name is reached; each stop is seen. */
async function reach(tab, role, name, key = 'Tab') {
  const wanted = tab.page.getByRole(role, { name });
  for (let stops = 0; stops < 200; stops += 1) {
    await tab.page.keyboard.press(key);
    const stop = tab.page.locator(':focus');
    if ((await stop.count()) === 0) continue;
    const look = await stop.evaluate((node) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(node);
      return { is: node.outerHTML.slice(0, 80), isSeen: node.matches('main, :not(:focus-visible)') || (outlineStyle !== 'none' && outlineWidth !== '0px') };
    });
    assert(look.isSeen, `the keyboard is at what does not show it: ${look.is}`);
    if (await wanted.evaluateAll((all) => all.includes(document.activeElement))) return;
  }
  throw new Error(`the keyboard does not reach ${role} ${name}`);
}

const isFocused = (own) => own.evaluate((node) => node === document.activeElement);

async function keyboardAlone(world) {
  const tab = await world.tab();
  const { page } = tab;
  const press = (key) => page.keyboard.press(key);
  await page.goto(world.origin);
  await page.getByLabel('User').waitFor();
  await reach(tab, 'textbox', 'User');
  await page.keyboard.type(world.users.Operator.user);
  await press('Tab');
  await page.keyboard.type(world.users.Operator.password);
  await press('Enter');
  await tab.live();
  // What a screen reader goes by.
  assert.equal(await page.getByRole('main').count(), 1);
  assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
  assert((await page.getByRole('navigation').count()) >= 1, 'there is a navigation');
  assert((await page.locator('[aria-live], [role=status], [role=alert]').count()) >= 1, 'grave events are spoken');
  await reach(tab, 'link', /^Arrays/);
  await press('Enter');
  await page.getByRole('heading', { name: 'Arrays', level: 1 }).waitFor();
  await reach(tab, 'button', 'Create array');
  await press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Create array' });
  await dialog.waitFor();
  assert(await dialog.evaluate((node) => node.contains(document.activeElement)), 'the keyboard is in the dialog');
  await reach(tab, 'textbox', 'Name');
  await page.keyboard.type('by-keys');
  await reach(tab, 'checkbox', /drive-2\d/);
  await press('Space');
  assert(await page.locator(':focus').isChecked(), 'the space bar checks');
  await press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert(await isFocused(tab.button('Create array')), 'the keyboard is where it was');
  await reach(tab, 'link', /^Shelf/, 'Shift+Tab');
  await press('Enter');
  await page.getByRole('heading', { name: 'Shelf', level: 1 }).waitFor();
  await reach(tab, 'link', /drive-01/);
  await press('Enter');
  await page.getByRole('heading', { name: 'drive-01.img', level: 1 }).waitFor();
}

pagesWithNothing.isOwn = true;
veryManyThings.isOwn = true;
keyboardAlone.isOwn = true;

export const tests = { narrowestAndWidestPages, pagesWithNothing, veryManyThings, keyboardAlone };
