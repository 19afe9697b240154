// The page that a benchmark writes: read in a browser that has no network, on a telephone and on a
// wall, light and dark.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LIMIT } from './launch.mjs';

const run = promisify(execFile);
const WIDTHS = [375, 1600];

/** All numbers of a table's cells, as they are in the page; null where there is none. */
function cellsOf(page, name) {
  return page.locator(`#${name} tbody tr`).evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value)))),
  );
}

async function theBenchmarksReport(world) {
  const dir = await mkdtemp(join(tmpdir(), 'palisade-report-'));
  try {
    const [page, json] = [join(dir, 'report.html'), join(dir, 'report.json')];
    const words = 'bench sweep --memory 96M --count 3 --block 4K,1M --jobs 1,2 --depth 4,8 --seconds 0.05 --instances 1 --area 64M';
    await run(world.program, [...words.split(' '), '--html', page, '--out', json], { timeout: LIMIT });
    const report = JSON.parse(await readFile(json, 'utf8'));
    for (const colorScheme of ['light', 'dark']) for (const width of WIDTHS) {
      const context = await world.browser.newContext({ colorScheme, viewport: { width, height: 900 }, offline: true });
      try {
        const [tab, asked] = [await context.newPage(), []];
        tab.on('request', (request) => asked.push(request.url()));
        tab.on('console', (line) => assert.notEqual(line.type(), 'error', line.text()));
        await tab.goto(`file://${page}`);
        await tab.screenshot({ path: `${world.folder}/report-${width}-${colorScheme}.png`, fullPage: true });
        assert.deepEqual(asked, [`file://${page}`], 'nothing is fetched');
        const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${wide} pixels at ${width}`);
        const ground = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(ground === 'rgb(255, 255, 255)', colorScheme === 'light', ground);
        for (const table of report.tables) {
          const wanted = table.rows.map((row) => row.map((cell) => (typeof cell === 'number' ? cell : null)));
          assert.deepEqual(await cellsOf(tab, table.name), wanted, `the numbers of ${table.name}`);
        }
        const results = await tab.locator('details tr[data-result]').evaluateAll((rows) =>
          rows.map((row) => [row.dataset.result, Number(row.querySelector('[data-value]').dataset.value)]),
        );
        assert.deepEqual(results, report.results.map((own) => [own.name, own.value]));
        const bars = await tab.locator('#local-4k-random-read .bar').evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().width));
        assert.ok(bars.length > 0 && bars.every((bar) => bar > 0), 'bars have a width');
      } finally {
        await context.close();
      }
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
theBenchmarksReport.isOwn = true;

export const tests = { theBenchmarksReport };
