// Looks at each page of a daemon's console in Chromium: light and dark, narrow and wide. Fails where
// a page has an error in its console, asks anything of elsewhere, scrolls sideways, or has faults
// that axe calls serious.
//
//   node tools/shots.mjs URL FOLDER USER PASSWORD [PAGE…]
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const [url, folder, user, password, ...only] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const origin = new URL(url).origin;
const executablePath = process.env.PALISADE_CHROMIUM ?? '/usr/bin/chromium';
const problems = [];
mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

/** Opens a tab that notes what it should not do. */
async function tab(colorScheme, width, height) {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    colorScheme,
    reducedMotion: 'reduce',
    viewport: { width, height },
  });
  const page = await context.newPage();
  const note = (what) => problems.push(`${colorScheme} ${width}: ${page.url()}: ${what}`);
  // A refusal is noted by Chromium as an error, too; what was asked is looked at below.
  page.on('console', (line) => {
    if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) note(line.text());
  });
  page.on('pageerror', (error) => note(error.message));
  page.on('request', (asked) => {
    if (!asked.url().startsWith(`${origin}/`)) note(`asks ${asked.url()}`);
  });
  page.on('response', (told) => {
    if (told.status() >= 400) note(`${told.status()} ${told.url()}`);
  });
  return { page, note };
}

async function check(page, note, name, shot) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  for (const fault of found.violations) {
    if (!['serious', 'critical'].includes(fault.impact)) continue;
    const nodes = fault.nodes.slice(0, 3).map((node) => `${node.target} (${node.failureSummary?.split('\n').slice(1, 2).join(' ').trim()})`);
    note(`axe: ${fault.id}: ${nodes.join('; ')}`);
  }
  const [whole, seen] = await page.evaluate(() => {
    const root = document.documentElement;
    return [root.scrollWidth, root.clientWidth];
  });
  if (whole > seen) note(`is ${whole - seen} pixels too wide`);
  await page.screenshot({ path: `${folder}/${name}-${shot}.png`, fullPage: true });
}

/** Each page, with one drive and one array. */
async function paths(page) {
  const first = async (at, selector) => {
    await page.goto(`${origin}${at}`);
    const link = page.locator(selector).first();
    try {
      await link.waitFor({ timeout: 5000 });
      return await link.getAttribute('href');
    } catch {
      return null;
    }
  };
  const drive = await first('/shelf', 'main a[href^="/drives/"]');
  const array = await first('/arrays', 'main a[href^="/arrays/"]');
  const fixed = ['/', '/shelf', '/arrays', '/volumes', '/exports', '/ports', '/jobs', '/alerts', '/events', '/audit', '/accounts'];
  return [...fixed, drive, array].filter((at) => at !== null);
}

const nameOf = (at) => {
  const [kind, one] = at.split('/').slice(1);
  return one ? kind.slice(0, -1) : kind || 'overview';
};

for (const scheme of ['light', 'dark']) {
  for (const width of [390, 1920]) {
    const { page, note } = await tab(scheme, width, width < 800 ? 844 : 1080);
    const shot = `${scheme}-${width}`;
    await page.goto(url);
    await page.getByLabel('User').waitFor();
    await check(page, note, 'login', shot);
    await page.getByLabel('User').fill(user);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    for (const at of await paths(page)) {
      const name = nameOf(at);
      if (only.length > 0 && !only.includes(name)) continue;
      await page.goto(`${origin}${at}`);
      await page.getByText('Live', { exact: true }).waitFor();
      await page.locator('main h1').first().waitFor({ state: 'attached' });
      // Charts have something to show.
      if (name === 'overview') await page.waitForTimeout(9000);
      await check(page, note, name, shot);
    }
    await page.context().close();
  }
}
await browser.close();
for (const problem of new Set(problems)) console.error(problem);
console.log(`pages in ${folder}: ${problems.length === 0 ? 'nothing found' : `${new Set(problems).size} problems`}`);
process.exit(problems.length === 0 ? 0 : 1);
