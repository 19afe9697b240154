// What is measured of the console in a browser. Each function gives the values of its result.
import { readdirSync, statSync } from 'node:fs';
import { USER } from './daemon.mjs';

const KEPT = 'palisade-session';
const MIB = 2 ** 20;

/** KiB of all files as they are sent. */
export function assets(dist) {
  const files = readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.gz'));
  const bytes = files.map((name) => statSync(`${dist}/${name}`).size);
  return [bytes.reduce((sum, own) => sum + own, 0) / 1024];
}

/** A tab in a browser that has seen nothing yet, with a session. */
export async function tab(browser, daemon) {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: { width: 1920, height: 1080 },
  });
  const session = JSON.stringify({ token: daemon.token, uri: '', user: USER, role: 'Administrator' });
  await context.addInitScript(([key, text]) => sessionStorage.setItem(key, text), [KEPT, session]);
  return context.newPage();
}

/** When the page's main part first holds this text and was drawn, in milliseconds since 1970. */
function whenShown(page, text) {
  return page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const isSeen = () => document.querySelector('main')?.textContent.includes(wanted);
        // A task after the next frame: it is drawn, and what the user does is heard.
        const tell = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())));
        if (isSeen()) return tell();
        const watch = new MutationObserver(() => {
          if (!isSeen()) return;
          watch.disconnect();
          tell();
        });
        watch.observe(document, { subtree: true, childList: true, characterData: true });
      }),
    text,
  );
}

/** Milliseconds from navigation until the overview shows its data, with nothing in any cache. */
export async function interactive(browser, daemon, rounds) {
  const values = [];
  for (let round = 0; round < rounds; round += 1) {
    const page = await tab(browser, daemon);
    await page.addInitScript(() => {
      const shown = () => {
        const main = document.querySelector('main');
        return main?.querySelector('.verdict .word') && ['a0', 'a1', 'a2', 'a3'].every((own) => main.textContent.includes(own));
      };
      const watch = new MutationObserver(() => {
        if (!shown()) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => (globalThis.shownAt = performance.now())));
      });
      watch.observe(document, { subtree: true, childList: true, characterData: true });
    });
    await page.goto(`${daemon.origin}/`);
    const at = await page.waitForFunction(() => globalThis.shownAt, null, { polling: 50, timeout: 30_000 });
    values.push(await at.jsonValue());
    await page.context().close();
  }
  return values;
}

/** Milliseconds from the request of a change until the page shows it: the slowest of each round. */
export async function event(browser, daemon, rounds, changes) {
  const page = await tab(browser, daemon);
  const values = [];
  for (let round = 0; round < rounds; round += 1) {
    // Half of them on the overview, as an event; half in the list of volumes, as a row.
    await page.goto(`${daemon.origin}${round % 2 === 0 ? '/' : '/volumes'}`);
    await page.getByText('Live', { exact: true }).waitFor();
    const found = [];
    for (let change = 0; change < changes; change += 1) {
      const name = `told-${round}-${change}`;
      const shown = whenShown(page, name);
      const asked = performance.timeOrigin + performance.now();
      const [volume, at] = await Promise.all([daemon.createVolume(name), shown]);
      found.push(at - asked);
      await daemon.ask('DELETE', volume);
    }
    values.push(Math.max(...found));
  }
  await page.context().close();
  return values;
}

/**
 * Milliseconds of the longest task, and of the CPU time of the one that took most of it, while 1,000
 * volumes are listed, scrolled through to the end, and read and listed anew because one came.
 */
export async function volumes(browser, daemon, rounds, count) {
  const [wall, cpu] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const page = await tab(browser, daemon);
    // The start of the page is another figure.
    await page.goto(`${daemon.origin}/jobs`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.waitForTimeout(2000);
    await browser.startTracing(page, { categories: ['toplevel', '__metadata'] });
    const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Volumes' });
    await link.click();
    await page.locator('tbody tr').first().waitFor();
    await scroll(page, count);
    // Of a long list only what is in sight is drawn: that the list has one more is told of the table.
    const rows = Number(await page.locator('main table').getAttribute('aria-rowcount'));
    const volume = await daemon.createVolume(`late-${round}`);
    await page.locator(`main table[aria-rowcount="${rows + 1}"]`).waitFor();
    const longest = longestTask(JSON.parse((await browser.stopTracing()).toString()).traceEvents);
    wall.push(longest.wall);
    cpu.push(longest.cpu);
    await page.context().close();
    await daemon.ask('DELETE', volume);
  }
  return { wall, cpu };
}

/** The longest task of the page's main thread in a trace. */
export function longestTask(events) {
  const thread = (event) => `${event.pid}:${event.tid}`;
  const names = events.filter((own) => own.name === 'thread_name' && own.args.name === 'CrRendererMain');
  const main = new Set(names.map(thread));
  const isTask = (own) => own.ph === 'X' && own.name.endsWith('RunTask') && main.has(thread(own));
  const tasks = events.filter(isTask);
  if (tasks.length === 0) throw new Error('the trace has no task of the page');
  const most = (key) => Math.max(...tasks.map((own) => (own[key] ?? 0) / 1000));
  return { wall: most('dur'), cpu: most('tdur') };
}

/** Scrolls to the end, by the wheel as a hand does; all rows have to have been there. */
async function scroll(page, count) {
  await page.mouse.move(960, 700);
  const names = new Set();
  for (let idle = 0; names.size < count; idle += 1) {
    if (idle === 300) throw new Error(`${names.size} of ${count} volumes were listed`);
    await page.mouse.wheel(0, 600);
    const seen = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const look = () => resolve([...document.querySelectorAll('tbody tr:not([aria-hidden]) th')].map((own) => own.textContent));
          requestAnimationFrame(() => requestAnimationFrame(look));
        }),
    );
    const before = names.size;
    for (const name of seen) names.add(name);
    if (names.size > before) idle = 0;
  }
}

/** MiB that the page's heap grows by in so many minutes, and what it has at the end. */
export async function heap(browser, daemon, minutes, tell) {
  const page = await tab(browser, daemon);
  await page.goto(`${daemon.origin}/`);
  await page.getByText('Live', { exact: true }).waitFor();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.enable');
  const used = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    return (await devtools.send('Runtime.getHeapUsage')).usedSize / MIB;
  };
  const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
  await pause(10);
  const [before, end] = [await used(), performance.now() + minutes * 60_000];
  for (let at = 0; performance.now() < end; at += 1) {
    // Something happens now and then.
    const volume = await daemon.createVolume(`now-and-then-${at}`);
    await pause(Math.min(5, Math.max(0, (end - performance.now()) / 1000)));
    await daemon.ask('DELETE', volume);
    if (at % 12 === 0) tell(`the console is live, ${((end - performance.now()) / 60_000).toFixed(1)} minutes to go`);
  }
  const after = await used();
  const isLive = await page.getByText('Live', { exact: true }).isVisible();
  if (!isLive) throw new Error('the page was not live at the end');
  await page.context().close();
  return { growth: after - before, whole: after };
}
