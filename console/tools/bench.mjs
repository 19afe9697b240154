// Measures the console in Chromium, and what the health of drives takes; the report has the form of
// `palisade bench`.
//
//   node tools/bench.mjs PROGRAM [--json] [--out FILE] [--rounds N] [--minutes N] [--dir FOLDER]
//                      [--only RESULT]…
//
// Status 0: everything was measured, whether or not goals were met; 1: something was left out, or
// nothing could be measured; 2: wrong use. What this machine can't do stays open, with the reason.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../browser/launch.mjs';
import { Daemon, VOLUMES } from './bench/daemon.mjs';
import { assets, event, heap, interactive, volumes } from './bench/figures.mjs';
import { GOALS, Report } from './bench/report.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ROUNDS = 9;
/** Goals stand for so many rounds at least. */
const ENOUGH = 5;
const CHANGES = 5;
/** Only so long a watch of the heap is held to its goal. */
const MINUTES = 10;
const MANY = 1000;

const tell = (line) => console.error(line);

function usage(problem) {
  tell(`${problem}\nusage: script/console bench [--json] [--out FILE] [--rounds N] [--minutes N] [--dir FOLDER] [--only RESULT]…`);
  tell(`results: ${Object.keys(GOALS).join(', ')}`);
  process.exit(2);
}

function read() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        out: { type: 'string' },
        rounds: { type: 'string', default: String(ROUNDS) },
        minutes: { type: 'string', default: String(MINUTES) },
        dir: { type: 'string', default: '/dev/shm' },
        only: { type: 'string', multiple: true, default: Object.keys(GOALS) },
      },
    });
    const minutes = Number(values.minutes);
    if (!(minutes > 0 && minutes <= 600)) usage('--minutes: give more than 0, 600 at most');
    const rounds = Number(values.rounds);
    if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) usage('--rounds: give 1 to 100');
    const unknown = values.only.find((name) => !(name in GOALS));
    if (unknown) usage(`--only: there is no result ${unknown}`);
    if (positionals.length !== 1) usage(`what is ${positionals[1] ?? 'the program'}?`);
    return { ...values, minutes, rounds, program: positionals[0] };
  } catch (error) {
    return usage(error.message);
  }
}

const options = read();
const words = process.argv.slice(3).join(' ');
const version = spawnSync(options.program, ['--version'], { encoding: 'utf8' }).stdout?.trim().split(' ').at(-1);
const report = new Report(version ?? '', `script/console bench ${words}`.trim());
const isEnough = options.rounds >= ENOUGH;
if (!isEnough) report.notes.push(`no goals: ${options.rounds} rounds, not ${ENOUGH}`);
const wants = (...names) => names.some((name) => options.only.includes(name));

/** Measures one result; one that fails keeps no other from being measured. */
async function measure(name, work) {
  if (!wants(name)) return;
  tell(name);
  try {
    await work();
  } catch (error) {
    report.missing.push(`${name}: ${error.message}`);
  }
}

async function inBrowser() {
  const browser = await launch();
  const daemon = await Daemon.begin(options.program, options.dir);
  try {
    report.notes.push(`Chromium ${browser.version()}, no GPU; 24 drives, 4 arrays`);
    await daemon.createVolume('read');
    const host = await daemon.host('a0/read');
    await measure('console-interactive-ms', async () => {
      report.add('console-interactive-ms', 'ms', await interactive(browser, daemon, options.rounds), isEnough);
    });
    await measure('console-event-ms', async () => {
      report.add('console-event-ms', 'ms', await event(browser, daemon, options.rounds, CHANGES), isEnough);
    });
    await measure('console-heap-growth-mib', async () => {
      const before = host.reads;
      const { growth, whole } = await heap(browser, daemon, options.minutes, tell);
      if (host.reads === before) throw new Error('nothing was read meanwhile');
      report.add('console-heap-growth-mib', 'MiB', [growth], options.minutes >= MINUTES);
      report.add('console-heap-mib', 'MiB', [whole]);
      if (options.minutes < MINUTES) report.notes.push(`no goal for the heap: ${options.minutes} minutes, not ${MINUTES}`);
    });
    await measure('console-1000-volumes-ms', async () => {
      for (let at = 1; at < MANY; at += 1) await daemon.createVolume(`v${String(at).padStart(4, '0')}`);
      const found = (await daemon.ask('GET', `${VOLUMES}?$top=1`)).body['Members@odata.count'];
      if (found !== MANY) throw new Error(`there are ${found} volumes`);
      const { wall, cpu } = await volumes(browser, daemon, options.rounds, MANY);
      report.add('console-1000-volumes-ms', 'ms', wall, isEnough);
      report.add('console-1000-volumes-cpu-ms', 'ms', cpu);
    });
    host.end();
  } finally {
    await browser.close();
    await daemon.end();
  }
}

function health() {
  const words = ['bench', 'health', '--json', '--rounds', String(options.rounds), '--dir', options.dir];
  const run = spawnSync(options.program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  if (run.status !== 0) throw new Error(`palisade bench health ended with status ${run.status}`);
  const found = JSON.parse(run.stdout);
  report.results.push(...found.results);
  report.notes.push(...(found.notes ?? []));
}

/** The check of script/guest that pulls a drive out while nobody reads. */
function unplug() {
  const kernel = '6.12';
  const words = ['run', kernel, '--nvme', '4', '--nvme-size', '128', '--time-limit', '600', '--palisade', options.program];
  const check = [`${ROOT}script/guest.d/drives`, 'unplug_idle'];
  const run = spawnSync(`${ROOT}script/guest`, [...words, '--', ...check], { encoding: 'utf8' });
  if (run.status === 77) {
    const why = run.stderr.trimEnd().split('\n').at(-1) ?? '';
    report.leaveOpen('unplug-ms', `the emulated machine can't run here: ${why}`);
    return;
  }
  const found = /^figure unplug-ms (\d+)/m.exec(run.stdout);
  if (run.status !== 0 || !found) throw new Error(`${run.stdout}${run.stderr}`.trimEnd().split('\n').slice(-5).join('; '));
  report.add('unplug-ms', 'ms', [Number(found[1])]);
  report.notes.push(`unplug-ms in an emulated machine, Linux ${kernel}`);
}

await measure('console-assets-kib', () => report.add('console-assets-kib', 'KiB', assets(`${ROOT}console/dist`)));
if (wants('console-interactive-ms', 'console-event-ms', 'console-heap-growth-mib', 'console-1000-volumes-ms')) {
  try {
    await inBrowser();
  } catch (error) {
    report.missing.push(`in the browser: ${error.message}`);
  }
}
await measure('health-iops', health);
await measure('unplug-ms', unplug);
process.stdout.write(options.json ? report.json() : report.table());
for (const missing of report.missing) tell(`not measured: ${missing}`);
if (options.out) writeFileSync(options.out, report.json());
process.exit(report.missing.length === 0 ? 0 : 1);
