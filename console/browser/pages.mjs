// Every page as each role sees it: light and dark, on a telephone and on a large screen.
import assert from 'node:assert/strict';
import { nameOf, PAGES, SCHEMES, SIZES } from './tab.mjs';

/** What the buttons of a page begin with, for who may only read. */
const READING = ['Charts of ', 'New password of ', 'End the session of ', 'Copy ', '10 minutes', '24 hours', '30 days'];
/** Buttons of Administrators alone. */
const RULING = ['Create account', 'Role of ', 'Delete operator', 'Disable operator', 'Send a test'];
/** Buttons of those who may change arrays, by their page. */
const CHANGING = { '/arrays': 'Create array', '/volumes': 'Create volume', '/exports': 'Share a volume', '/shares': 'Create share' };

/** All pages, with one of each drive and array. */
export async function paths(tab) {
  const first = async (at, link) => {
    await tab.go(at);
    const found = tab.page.locator(link).first();
    return (await found.waitFor().then(() => found)).getAttribute('href');
  };
  const drive = await first('/shelf', 'main ol a[href^="/drives/"]');
  const array = await first('/arrays', 'main a[href^="/arrays/"]');
  return [...PAGES, drive, array];
}

/** Waits until a page shows what it is for. */
async function filled(tab, at) {
  if (at !== '/') return;
  const values = tab.page.getByLabel('Requests a second').locator('.big');
  await values.filter({ hasText: /\d/ }).waitFor();
}

/** Looks at a page in each scheme and size. What others see is a part of what an Administrator sees:
 * there axe looks at each scheme and each size once. */
export async function inAllForms(tab, name, isThorough) {
  for (const colorScheme of SCHEMES) {
    await tab.page.emulateMedia({ colorScheme });
    for (const [width, height] of SIZES) {
      const form = `${name}-${colorScheme}-${width}`;
      await tab.page.setViewportSize({ width, height });
      await tab.look(form);
      const isOne = (colorScheme === 'light') === (width === 390);
      if (isThorough || isOne) await tab.axe(form);
    }
  }
}

/** Looks at all pages as a role; gives the names of the buttons of each. */
async function looked(world, role) {
  const tab = await world.tab();
  await tab.logIn(world.users[role]);
  const seen = {};
  for (const at of await paths(tab)) {
    // The address works by itself, too.
    await tab.page.goto(`${world.origin}${at}`);
    await tab.live();
    await filled(tab, at);
    seen[at] = await tab.buttons();
    await inAllForms(tab, `${nameOf(at)}-${role.toLowerCase()}`, role === 'Administrator');
  }
  return seen;
}

const startsWith = (starts) => (name) => starts.some((start) => name.startsWith(start));

async function everyPageByEachRole(world) {
  // Beside each other: a page waits more than it works.
  const roles = ['Administrator', 'Operator', 'ReadOnly'];
  const [ruler, changer, reader] = await Promise.all(roles.map((role) => looked(world, role)));
  const all = Object.values(ruler).flat();
  for (const start of RULING) assert(all.some(startsWith([start])), `an Administrator has no ${start}: ${all}`);
  for (const [at, name] of Object.entries(CHANGING)) {
    assert(changer[at].includes(name), `an Operator has no ${name} at ${at}`);
  }
  const more = Object.values(changer).flat().filter(startsWith(RULING));
  assert.deepEqual(more, [], 'buttons for what an Operator may not');
  const others = Object.values(reader).flat().filter((name) => !startsWith(READING)(name));
  assert.deepEqual(others, [], 'buttons for what a reader may not');
}

async function loggingIn(world) {
  const tab = await world.tab({ width: 390, height: 844, colorScheme: 'dark' });
  await tab.page.goto(`${world.origin}/volumes`);
  await tab.page.getByLabel('User').waitFor();
  await inAllForms(tab, 'login', true);
  await tab.page.getByLabel('User').fill(world.users.ReadOnly.user);
  await tab.page.getByLabel('Password').fill('not it');
  await tab.refused(401, () => tab.button('Log in').click());
  await tab.page.getByRole('alert').filter({ hasText: 'User or password is wrong.' }).waitFor();
  // By the keyboard alone; then it is the page that was asked for.
  await tab.page.getByLabel('User').focus();
  await tab.page.keyboard.press('Tab');
  await tab.page.keyboard.type(world.users.ReadOnly.password);
  await tab.page.keyboard.press('Enter');
  await tab.live();
  await tab.page.getByRole('heading', { name: 'Volumes', level: 1 }).waitFor();
  // What is still under way then is refused, and nobody sees it.
  tab.isForgiving = true;
  await tab.page.getByRole('button', { name: 'Log out' }).click();
  await tab.page.getByLabel('User').waitFor();
}

export const tests = { loggingIn, everyPageByEachRole };
