// A daemon of the tests' own: 24 drives that are files, in an enclosure, and around them what a
// recorded machine had. Everything is in a folder that goes with it.
import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Served, text } from '../tools/served.mjs';

const SLOTS = 24;
const DRIVE_BYTES = 256 << 20;
/** The drive of the last slot has a name that a careless page would run. */
export const HTML_NAME = 'x<img src=x onerror=alert(1)><b>bold.img';

/** Whether a port of the loopback can be had. */
function isFree(port) {
  return new Promise((resolve) => {
    const taken = createServer();
    taken.on('error', () => resolve(false));
    taken.listen(port, '127.0.0.1', () => taken.close(() => resolve(true)));
  });
}

/** A port of the loopback that nobody has: none of those that the kernel gives to who connects, as one
 * of the browser's connections could take it before the daemon does. */
export async function freePort() {
  const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/);
  const [least, most] = Number(first) > 20_000 ? [10_000, Number(first)] : [61_000, 65_536];
  for (;;) {
    const port = randomInt(least, most);
    if (await isFree(port)) return port;
  }
}

/** Makes a recorded tree of /sys; its form is told in crates/drives/src/sysfs/tree.rs. */
function unpack(tree, into) {
  for (const line of tree.split('\n')) {
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

/** A shelf that tells of itself: the program as a child, with two ports and three drives. */
async function shelfOf(program, folder) {
  const any = '127.0.0.1:0';
  const words = ['--listen', any, '--ports', '2', '--drives', '3', '--drive-size', '64M', '--redfish', any];
  const more = ['--control', join(folder, 'shelf.sock'), '--json'];
  const own = spawn(program, ['shelf', ...words, ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: own.stdout });
  const told = await new Promise((resolve, reject) => {
    lines.once('line', (line) => resolve(JSON.parse(line)));
    own.once('error', reject);
    own.once('exit', () => reject(new Error('the shelf did not start')));
  });
  return { own, told };
}

/** Whether this machine makes block devices and files of volumes. Where tools must be there, it must. */
function canMount() {
  if (process.env.PALISADE_REQUIRE_TOOLS === '1') return true;
  try {
    closeSync(openSync('/dev/fuse', 'r+'));
  } catch {
    return false;
  }
  return process.getuid() === 0 && existsSync('/dev/loop-control');
}

/** Whether the servers of shares are here. Where tools must be there, they must. */
function canServe() {
  if (process.env.PALISADE_REQUIRE_TOOLS === '1') return true;
  const all = ['smbd', 'smbclient', 'ganesha.nfsd', 'mkfs.ext4'];
  return all.every((name) => ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((folder) => existsSync(join(folder, name))));
}

export class Daemon extends Served {
  #shelf = null;
  #services = null;
  user = 'admin';
  password = randomBytes(15).toString('base64url');

  /** With a tree of /sys, as text, and so many drives of so many bytes; it is ready. With a shelf, if it is to have one. */
  static async begin(program, tree, many = SLOTS, bytes = DRIVE_BYTES, hasShelf = false) {
    const own = new Daemon(program, tmpdir(), 'palisade-console-');
    own.port = await freePort();
    own.origin = `https://127.0.0.1:${own.port}`;
    mkdirSync(own.path('state'), { mode: 0o700 });
    unpack(tree, own.path('sys'));
    own.drives = Array.from({ length: many }, (_, at) => own.drive(fileOf(at + 1), bytes));
    own.configure([...own.#config(), ...(hasShelf ? await own.#withShelf() : [])]);
    await own.start();
    own.administrator(own.user, own.password);
    return own;
  }

  /** Starts a shelf beside it; how that is configured. */
  async #withShelf() {
    const { own, told } = await shelfOf(this.program, this.folder);
    this.#shelf = own;
    const { url, fingerprint, user, password } = told.redfish;
    writeFileSync(this.path('shelf.login'), `${user}:${password}\n`, { mode: 0o600 });
    const login = `credentials = ${text(this.path('shelf.login'))}`;
    return ['[[shelf]]', 'name = "left"', `redfish = ${text(url)}`, `fingerprint = ${text(fingerprint)}`, login];
  }

  /** Starts what makes block devices and files of its volumes, if this machine can. */
  async startServices() {
    if (!canMount()) return;
    const words = ['services', '--config', this.path('palisade.toml')];
    const own = spawn(this.program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#services = own;
    const lines = createInterface({ input: own.stdout });
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => line === 'ready' && resolve());
      own.once('error', reject);
      own.once('exit', () => reject(new Error('`palisade services` did not become ready')));
    });
  }

  /** Whether its services run. */
  get hasServices() {
    return this.#services !== null;
  }

  /** Whether its services can share files of its volumes. */
  get hasShares() {
    return this.hasServices && canServe();
  }

  /** Ends what is mounted of its volumes, which would stay, and its services. */
  #endServices() {
    if (!this.hasServices) return;
    try {
      const systems = this.command(['status']).arrays.flatMap((own) => own.filesystems ?? []);
      for (const own of systems.flatMap((of) => of.shares)) this.command(['share', 'delete', own.name, '--yes']);
      const all = this.command(['export', 'list']).exports.filter((own) => ['loop', 'ublk', 'fuse'].includes(own.kind));
      for (const own of all) this.command(['export', 'delete', own.id]);
    } catch (error) {
      console.error(`what is mounted stays: ${error.message}`);
    }
    this.#services.kill('SIGTERM');
  }

  /** Ends it, its services and its shelf, and clears away. */
  async end() {
    this.#endServices();
    this.#shelf?.kill('SIGTERM');
    await super.end();
  }

  #config() {
    const slots = this.drives.map((path, at) => `"${at + 1}" = ${text(path)}`);
    const plain = [
      `socket = ${text(this.socket)}`,
      `drives = [${text(this.path('*.img'))}]`,
      `https = ["127.0.0.1:${this.port}"]`,
      `state = ${text(this.path('state'))}`,
      `services = ${text(this.path('services'))}`,
      `sysfs = ${text(this.path('sys'))}`,
      'drive_wait_ms = 0',
    ];
    if (slots.length === 0) return plain;
    return [
      ...plain,
      '[[enclosure]]',
      'name = "shelf"',
      'model = "Data24"',
      `slots = ${slots.length}`,
      `columns = ${SLOTS}`,
      'modules = [',
      '  { name = "A", ports = ["ens1f0np0", "ens1f1np1"] },',
      '  { name = "B", ports = ["ens2f0np0", "ens2f1np1"] },',
      ']',
      `drives = { ${slots.join(', ')} }`,
    ];
  }

  /** Ends it as a crash would. */
  kill() {
    return this.stop('SIGKILL');
  }
}
