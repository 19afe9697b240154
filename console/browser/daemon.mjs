// A daemon of the tests' own: 24 drives that are files, in an enclosure, and around them what a
// recorded machine had. Everything is in a folder that goes with it.
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const SLOTS = 24;
const DRIVE_BYTES = 256 << 20;
/** The drive of the last slot has a name that a careless page would run. */
export const HTML_NAME = 'x<img src=x onerror=alert(1)><b>bold.img';

/** A port of the loopback that nobody has. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const taken = createServer();
    taken.on('error', reject);
    taken.listen(0, '127.0.0.1', () => {
      const { port } = taken.address();
      taken.close(() => resolve(port));
    });
  });
}

/** Makes a recorded tree of /sys; its form is told in crates/drives/src/sysfs/tree.rs. */
function unpack(text, into) {
  for (const line of text.split('\n')) {
    // Slots are told by the configuration: the recorded ones would be a second enclosure.
    if (line === '' || /^(#|bus\/pci\/slots\/)/.test(line)) continue;
    const [, path, mark, rest] = /^(.*?)(?: (->|=) ?(.*)|\/)$/.exec(line);
    const whole = join(into, path);
    mkdirSync(mark ? dirname(whole) : whole, { recursive: true });
    if (mark === '->') symlinkSync(rest, whole);
    else if (mark === '=') {
      const plain = rest.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter));
      writeFileSync(whole, `${plain}\n`);
    }
  }
}

/** A drive's file by the number of its slot. */
const fileOf = (slot) => (slot === SLOTS ? HTML_NAME : `drive-${String(slot).padStart(2, '0')}.img`);

export class Daemon {
  #process = null;
  user = 'admin';
  password = randomBytes(15).toString('base64url');

  /** With a tree of /sys, as text; it is ready. */
  static async begin(program, tree) {
    const own = new Daemon();
    own.program = program;
    own.folder = mkdtempSync(join(tmpdir(), 'palisade-console-'));
    own.socket = join(own.folder, 'socket');
    own.port = await freePort();
    own.origin = `https://127.0.0.1:${own.port}`;
    mkdirSync(join(own.folder, 'state'), { mode: 0o700 });
    unpack(tree, join(own.folder, 'sys'));
    for (let slot = 1; slot <= SLOTS; slot += 1) {
      closeSync(openSync(own.drive(slot), 'w'));
      truncateSync(own.drive(slot), DRIVE_BYTES);
    }
    writeFileSync(join(own.folder, 'palisade.toml'), own.#config());
    await own.start();
    const words = ['account', 'create', own.user, '--role', 'Administrator', '--password-stdin'];
    own.ask(words, `${own.password}\n`);
    return own;
  }

  drive(slot) {
    return join(this.folder, fileOf(slot));
  }

  #config() {
    // A text of JSON is one of TOML.
    const text = JSON.stringify;
    const slots = Array.from({ length: SLOTS }, (_, at) => `"${at + 1}" = ${text(this.drive(at + 1))}`);
    return [
      `socket = ${text(this.socket)}`,
      `drives = [${text(join(this.folder, '*.img'))}]`,
      `https = ["127.0.0.1:${this.port}"]`,
      `state = ${text(join(this.folder, 'state'))}`,
      `sysfs = ${text(join(this.folder, 'sys'))}`,
      'drive_wait_ms = 0',
      '[[enclosure]]',
      'name = "shelf"',
      'model = "Data24"',
      `slots = ${SLOTS}`,
      `columns = ${SLOTS}`,
      'modules = [',
      '  { name = "A", ports = ["ens1f0np0", "ens1f1np1"] },',
      '  { name = "B", ports = ["ens2f0np0", "ens2f1np1"] },',
      ']',
      `drives = { ${slots.join(', ')} }`,
      '',
    ].join('\n');
  }

  /** Starts it; also again. */
  async start() {
    const log = openSync(join(this.folder, 'daemon.log'), 'a');
    const words = ['serve', '--config', join(this.folder, 'palisade.toml')];
    this.#process = spawn(this.program, words, { stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    for await (const line of createInterface({ input: this.#process.stdout })) {
      if (line === 'ready') return;
    }
    throw new Error(`the daemon did not become ready: ${readFileSync(join(this.folder, 'daemon.log'))}`);
  }

  /** Ends it as a crash would. */
  async kill() {
    const own = this.#process;
    this.#process = null;
    if (!own || own.exitCode !== null || own.signalCode !== null) return;
    const gone = new Promise((resolve) => own.once('exit', resolve));
    own.kill('SIGKILL');
    await gone;
  }

  /** A command of the command line, which must succeed; its object. */
  ask(words, input = '') {
    const all = [...words, '--json', '--socket', this.socket];
    return JSON.parse(execFileSync(this.program, all, { input, encoding: 'utf8', stdio: 'pipe' }));
  }

  /** Ends it, and clears away. */
  async end() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
