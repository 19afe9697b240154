// A tab that notes what a page should never do: an error in its console, a request to elsewhere, an
// answer that refuses. And what is looked at on every page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { LIMIT } from './launch.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** The longest that a test may take. */
export const LONGEST = 3 * LIMIT;
export const PAGES = ['/', '/shelf', '/arrays', '/volumes', '/exports', '/shares', '/ports', '/jobs', '/alerts', '/events', '/audit', '/accounts'];
export const SIZES = [[390, 844], [1920, 1080]];
export const SCHEMES = ['light', 'dark'];

/** The page's name in names of files. */
export function nameOf(at) {
  const [kind, one] = at.split('/').slice(1);
  return one ? kind.slice(0, -1) : kind || 'overview';
}

export class Tab {
  /** What should not have happened. */
  problems = [];
  /** While the daemon is gone, requests fail. */
  isForgiving = false;

  constructor(page, origin, folder) {
    this.page = page;
    this.origin = origin;
    this.folder = folder;
    page.setDefaultTimeout(LIMIT);
    // What was refused is looked at below; a second line about it says nothing.
    page.on('console', (line) => {
      const isRefusal = line.text().startsWith('Failed to load resource');
      if (line.type() === 'error' && !isRefusal) this.note(line.text());
    });
    page.on('pageerror', (error) => this.note(error.message));
    page.on('dialog', (dialog) => {
      this.note(`opened a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (asked) => {
      if (!asked.url().startsWith(`${origin}/`)) this.note(`asks ${asked.url()}`);
    });
    page.on('response', (told) => {
      if (told.status() >= 400 && !this.isForgiving) this.note(`${told.status()} ${told.url()}`);
    });
  }

  /** A new tab, or one more in the same browser. */
  static async open(browser, { origin, folder, width = 1920, height = 1080, colorScheme = 'light' }) {
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      colorScheme,
      reducedMotion: 'reduce',
      viewport: { width, height },
    });
    return new Tab(await context.newPage(), origin, folder);
  }

  async beside() {
    return new Tab(await this.page.context().newPage(), this.origin, this.folder);
  }

  note(what) {
    this.problems.push(`${new URL(this.page.url()).pathname}: ${what}`);
  }

  async logIn({ user, password }, at = '/') {
    await this.page.goto(`${this.origin}${at}`);
    await this.enter({ user, password });
  }

  /** Fills the form that is there. */
  async enter({ user, password }) {
    await this.page.getByLabel('User').fill(user);
    await this.page.getByLabel('Password').fill(password);
    await this.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await this.live();
  }

  /** Waits until the page is there, and its values are new. */
  async live() {
    await this.page.getByText('Live', { exact: true }).waitFor();
    await this.page.locator('main h1').first().waitFor({ state: 'attached' });
  }

  /** To another page, as a link goes. */
  async go(at) {
    await this.page.evaluate((path) => {
      history.pushState(null, '', path);
      dispatchEvent(new PopStateEvent('popstate'));
    }, at);
    await this.live();
  }

  button(name) {
    return this.page.getByRole('button', { name, exact: true });
  }

  /** Does what the daemon must refuse with this status, which is no problem. */
  async refused(status, act) {
    const [answer] = await Promise.all([this.page.waitForResponse((own) => own.status() === status), act()]);
    this.forgive(answer);
  }

  /** An answer that refuses is no problem. */
  forgive(answer) {
    const line = this.problems.findIndex((own) => own.endsWith(`${answer.status()} ${answer.url()}`));
    if (line >= 0) this.problems.splice(line, 1);
  }

  /** The names of all buttons of the page itself. */
  async buttons() {
    const all = await this.page.locator('main button').all();
    return Promise.all(all.map((own) => own.evaluate((node) => node.ariaLabel || node.innerText.trim())));
  }

  /** A picture of the page, and whether it is too wide. */
  async look(name) {
    const wide = await this.page.evaluate(() => {
      const root = document.documentElement;
      return root.scrollWidth - root.clientWidth;
    });
    if (wide > 0) this.note(`${name}: is ${wide} pixels too wide`);
    await this.page.screenshot({ path: `${this.folder}/${name}.png`, fullPage: true });
  }

  /** What axe calls serious or worse. */
  async axe(name) {
    if (!(await this.page.evaluate(() => 'axe' in globalThis))) await this.page.evaluate(AXE);
    const faults = await this.page.evaluate(async () => {
      const found = await globalThis.axe.run({ resultTypes: ['violations'] });
      return found.violations
        .filter((fault) => ['serious', 'critical'].includes(fault.impact))
        .map((fault) => `${fault.id}: ${fault.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`);
    });
    for (const fault of faults) this.note(`${name}: axe: ${fault}`);
  }

  close() {
    return this.page.context().close();
  }
}
