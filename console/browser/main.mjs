// Tests of the console in Chromium, one after the other in one browser.
//
//   node browser/main.mjs PROGRAM FOLDER [NAME…]
//   node browser/main.mjs URL FOLDER USER PASSWORD [NAME…]
//
// With PALISADE_MACHINE=yes the daemon at URL is in an emulated machine: see machine.mjs.
//
// PROGRAM is a palisade of which a daemon is started; with a URL the tests are those that need only
// an Administrator of a daemon with free drives. NAME… are beginnings of the tests' names. Pictures go
// to FOLDER, also one of each tab where a test fails. Results are told in the form of Rust's tests.
import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { Api } from './api.mjs';
import { Daemon } from './daemon.mjs';
import { launch } from './launch.mjs';
import { Machine } from './machine.mjs';
import { seed } from './seed.mjs';
import { LONGEST, Tab } from './tab.mjs';
import { tests as connection } from './connection.mjs';
import { tests as extents } from './extents.mjs';
import { tests as fibreChannel } from './fibre-channel.mjs';
import { tests as flow } from './flow.mjs';
import { tests as pages } from './pages.mjs';
import { tests as report } from './report.mjs';
import { tests as shares } from './shares.mjs';
import { everyValueIsOnItsPage } from './values.mjs';

const TREE = new URL('../../crates/drives/tests/trees/shelf.tree', import.meta.url);
const TESTS = { ...pages, everyValueIsOnItsPage, ...extents, ...flow, ...shares, ...fibreChannel, ...report, ...connection };

const [what, folder, ...rest] = process.argv.slice(2);
const isElsewhere = /^https?:/.test(what);
const [user, password] = isElsewhere ? rest.splice(0, 2) : [];

/** What a test is given. */
class World {
  tabs = [];
  program = what;
  folder = folder;

  /** A tab that is closed with the test. */
  async tab(options = {}) {
    const tab = await Tab.open(this.browser, { origin: this.origin, folder, ...options });
    return this.keep(tab);
  }

  keep(tab) {
    this.tabs.push(tab);
    return tab;
  }

  /** Turns to a daemon, as an Administrator of it: with an account of each role. */
  async enter(origin, admin) {
    this.origin = origin;
    this.api = await Api.begin(origin, admin.user, admin.password);
    this.users = { Administrator: admin };
    for (const [role, name] of [['Operator', 'operator'], ['ReadOnly', 'readonly']]) {
      // Somebody's daemon may have accounts of these names.
      const user = isElsewhere ? `${name}-${randomBytes(3).toString('hex')}` : name;
      const own = { user, password: randomBytes(15).toString('base64url') };
      await this.api.account(user, role, own.password);
      this.users[role] = own;
    }
  }

  /** Closes the pages of a test whose daemon is about to end: what they would ask then says nothing. */
  async leave() {
    await Promise.all(this.tabs.map((tab) => tab.page.close()));
  }

  /** The same browser, and another daemon. */
  async beside(origin, admin) {
    const other = Object.create(this);
    await other.enter(origin, admin);
    return other;
  }

  /** Ends a test: whatever its tabs noted is its failure, too. */
  async close(name, error) {
    const problems = [...(error ? [error.stack ?? String(error)] : []), ...this.tabs.flatMap((tab) => tab.problems)];
    for (const [at, tab] of this.tabs.entries()) {
      const path = `${folder}/failed-${name}-${at}.png`;
      if (problems.length > 0) await tab.page.screenshot({ path, timeout: 60_000 }).catch(() => {});
      await tab.close().catch(() => {});
    }
    this.tabs = [];
    return [...new Set(problems)];
  }
}

function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${LONGEST / 1000} s`)), LONGEST);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function main(world) {
  world.machine = process.env.PALISADE_MACHINE === 'yes' ? new Machine() : null;
  world.daemon = isElsewhere ? null : await Daemon.begin(what, readFileSync(TREE, 'utf8'), undefined, undefined, true);
  world.browser = await launch();
  await world.daemon?.startServices();
  if (world.daemon) await seed(world.daemon);
  await (world.daemon ? world.enter(world.daemon.origin, world.daemon) : world.enter(new URL(what).origin, { user, password }));
  let [passed, failed] = [0, 0];
  for (const [name, test] of Object.entries(TESTS)) {
    if (rest.length > 0 && !rest.some((start) => name.startsWith(start))) continue;
    if (test.isOwn && !world.daemon) continue;
    const begun = Date.now();
    const error = await inTime(test(world)).then(() => null, (reason) => reason);
    const problems = await world.close(name, error);
    if (problems.length > 0) failed += 1;
    else passed += 1;
    console.log(`test console::${name} ... ${problems.length > 0 ? 'FAILED' : 'ok'}`);
    for (const problem of problems) console.log(`    ${problem.replaceAll('\n', '\n    ')}`);
    console.error(`    ${name}: ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }
  console.log(`test result: ${failed > 0 ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed; 0 ignored`);
  return failed === 0 && passed > 0;
}

mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (name.endsWith('.png')) rmSync(`${folder}/${name}`);
const world = new World();
let isGood = false;
const end = async () => {
  await world.browser?.close().catch(() => {});
  // On somebody's daemon nothing is left behind.
  const made = isElsewhere ? [world.users?.Operator, world.users?.ReadOnly] : [];
  for (const own of made) if (own) await world.api.forget(own.user).catch(() => {});
  await world.api?.end().catch(() => {});
  world.machine?.end();
  await world.daemon?.end();
  await world.demo?.end();
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => void end().finally(() => process.exit(1)));
}
try {
  isGood = await main(world);
} finally {
  await end();
}
process.exit(isGood ? 0 : 1);
