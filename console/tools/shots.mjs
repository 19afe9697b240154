// Pictures of each page of a daemon's console in Chromium: light and dark, narrow and wide. Fails where
// a page does what browser/tab.mjs notes.
//
//   node tools/shots.mjs URL FOLDER USER PASSWORD [PAGE…]
import { mkdirSync } from 'node:fs';
import { launch } from '../browser/launch.mjs';
import { nameOf, PAGES, SCHEMES, SIZES, Tab } from '../browser/tab.mjs';

const [url, folder, user, password, ...only] = process.argv.slice(2);
const origin = new URL(url).origin;
mkdirSync(folder, { recursive: true });

/** Each page, with the first drive and the first array where there are any. */
async function paths(tab) {
  const first = async (at, kind) => {
    await tab.go(at);
    const link = tab.page.locator(`main a[href^="${kind}"]`).first();
    return (await link.count()) > 0 ? [await link.getAttribute('href')] : [];
  };
  return [...PAGES, ...(await first('/shelf', '/drives/')), ...(await first('/arrays', '/arrays/'))];
}

async function look(browser, colorScheme, [width, height]) {
  const tab = await Tab.open(browser, { origin, folder, width, height, colorScheme });
  const seen = async (name) => {
    const form = `${name}-${colorScheme}-${width}`;
    await tab.look(form);
    await tab.axe(form);
  };
  await tab.page.goto(url);
  await tab.page.getByLabel('User').waitFor();
  await seen('login');
  await tab.enter({ user, password });
  for (const at of await paths(tab)) {
    const name = nameOf(at);
    if (only.length > 0 && !only.includes(name)) continue;
    await tab.go(at);
    // Charts have something to show.
    if (name === 'overview') await tab.page.waitForTimeout(9000);
    await seen(name);
  }
  await tab.close();
  return tab.problems.map((problem) => `${colorScheme} ${width}: ${problem}`);
}

const browser = await launch();
const problems = [];
for (const scheme of SCHEMES) {
  for (const size of SIZES) problems.push(...(await look(browser, scheme, size)));
}
await browser.close();
const found = new Set(problems);
for (const problem of found) console.error(problem);
console.log(`pages in ${folder}: ${found.size === 0 ? 'nothing found' : `${found.size} problems`}`);
process.exit(found.size === 0 ? 0 : 1);
