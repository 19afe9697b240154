// The daemon that the console is measured with: the program as a child, on sparse files with arrays,
// an account and HTTPS; and a host that reads a volume over NBD.
//
// States: started → ready → listening (an account made, HTTPS open, logged in) → gone, by `end`,
// which removes its folder.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const STORAGE = '/redfish/v1/Systems/local/Storage/palisade';
export const VOLUMES = `${STORAGE}/Volumes`;
const SESSIONS = '/redfish/v1/SessionService/Sessions';
const ARRAYS = 4;
const WIDTH = 6;
const DRIVE_BYTES = 512 * 2 ** 20;
export const VOLUME_BYTES = 4 * 2 ** 20;
export const USER = 'bench';

export class Daemon {
  #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  #made = 0;

  constructor(program, folder) {
    this.program = program;
    this.folder = mkdtempSync(join(folder, 'palisade-bench-console-'));
    this.password = randomBytes(16).toString('hex');
  }

  /** Starts it and makes its arrays: 24 drives in 4 arrays. */
  static async start(program, folder) {
    const daemon = new Daemon(program, folder);
    try {
      await daemon.#start();
    } catch (error) {
      await daemon.end();
      throw error;
    }
    return daemon;
  }

  async #start() {
    const path = (name) => join(this.folder, name);
    // A JSON string is a TOML string too.
    const text = (name) => JSON.stringify(path(name));
    const drives = Array.from({ length: ARRAYS * WIDTH }, (_, at) => path(`drive-${String(at).padStart(2, '0')}.img`));
    for (const drive of drives) {
      writeFileSync(drive, '');
      truncateSync(drive, DRIVE_BYTES);
    }
    writeFileSync(
      path('palisade.toml'),
      `socket = ${text('socket')}\ncores = 1\ndrives = [${text('drive-*.img')}]\nparity = "cpu"\n` +
        `confirm = "off"\nstate = ${text('state')}\nhttps = ["127.0.0.1:0"]\n\n` +
        `[access]\nadministrators = ["root", "${process.getuid()}"]\n`,
    );
    const log = openSync(path('daemon.log'), 'w');
    const words = ['serve', '--config', path('palisade.toml')];
    this.child = spawn(this.program, words, { stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    await new Promise((resolve, reject) => {
      createInterface(this.child.stdout).on('line', (line) => line.trim() === 'ready' && resolve());
      this.child.on('error', reject);
      this.child.on('exit', () => reject(new Error(`the daemon did not start: ${this.#said()}`)));
    });
    for (let at = 0; at < ARRAYS; at += 1) {
      const own = drives.slice(at * WIDTH, (at + 1) * WIDTH);
      this.command(['array', 'create', `a${at}`, '--level', '5', '--drives', ...own]);
    }
    const account = ['account', 'create', USER, '--role', 'Administrator', '--password-stdin'];
    this.command(account, `${this.password}\n`);
    this.port = await this.#port();
    this.origin = `https://127.0.0.1:${this.port}`;
    const body = { UserName: USER, Password: this.password };
    const session = await this.ask('POST', SESSIONS, body);
    this.token = session.headers['x-auth-token'];
    this.pools = (await this.ask('GET', `${STORAGE}/StoragePools`)).body.Members;
  }

  #said() {
    return readFileSync(join(this.folder, 'daemon.log'), 'utf8').trimEnd();
  }

  async #port() {
    for (let look = 0; look < 6000; look += 1) {
      const found = /HTTPS on 127\.0\.0\.1:(\d+),/.exec(this.#said());
      if (found) return Number(found[1]);
      await new Promise((done) => setTimeout(done, 10));
    }
    throw new Error(`no HTTPS: ${this.#said()}`);
  }

  /** Runs a command of the command line, which has to succeed; what it prints. */
  command(words, input = '') {
    const env = { ...process.env, PALISADE_SOCKET: join(this.folder, 'socket') };
    delete env.PALISADE_URL;
    const run = spawnSync(this.program, [...words, '--json'], { input, env, encoding: 'utf8' });
    if (run.status === 0) return JSON.parse(run.stdout);
    throw new Error(`palisade ${words.slice(0, 3).join(' ')}: ${run.error ?? run.stderr.trimEnd()}`);
  }

  /** Asks over HTTPS, which has to succeed. */
  ask(method, path, body) {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { ...(this.token && { 'x-auth-token': this.token }) };
    if (text) Object.assign(headers, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    const where = { host: '127.0.0.1', port: this.port, path, method, headers, agent: this.#agent };
    return new Promise((resolve, reject) => {
      const sent = request(where, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () => {
          const said = Buffer.concat(parts).toString();
          if (answer.statusCode >= 300) reject(new Error(`${method} ${path}: ${answer.statusCode} ${said}`));
          else resolve({ headers: answer.headers, body: said === '' ? null : JSON.parse(said) });
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  }

  /** Makes a volume, in the arrays in turns; its address. */
  async createVolume(name) {
    const pool = this.pools[this.#made % this.pools.length];
    this.#made += 1;
    const sources = [{ ProvidingPools: { Members: [{ '@odata.id': pool['@odata.id'] }] } }];
    const body = { Name: name, CapacityBytes: VOLUME_BYTES, CapacitySources: sources };
    return (await this.ask('POST', VOLUMES, body)).headers.location;
  }

  /** A host that reads a volume until it is told to end. */
  async host(volume) {
    const { uri } = this.command(['export', 'create', volume, '--nbd', '127.0.0.1:0']);
    const { hostname, port, pathname } = new URL(uri.replace('nbd:', 'http:'));
    return new Host(hostname, Number(port), decodeURIComponent(pathname.slice(1)));
  }

  /** Ends it, and removes its folder. */
  async end() {
    this.#agent.destroy();
    if (this.child && this.child.exitCode === null && this.child.signalCode === null && this.child.pid) {
      const gone = new Promise((done) => this.child.once('exit', done));
      this.child.kill('SIGTERM');
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Reads 4 KiB of a volume, 200 times a second, over NBD (newstyle, by the name of the export). */
class Host {
  #buffer = Buffer.alloc(0);
  #begun = false;

  constructor(host, port, name) {
    this.reads = 0;
    this.socket = connect({ host, port, noDelay: true });
    // It ends with the daemon.
    this.socket.on('error', () => this.end());
    this.socket.on('data', (part) => {
      this.#buffer = Buffer.concat([this.#buffer, part]);
      this.#take(name);
    });
  }

  #take(name) {
    if (!this.#begun && this.#buffer.length >= 18) {
      this.#begun = true;
      this.#buffer = this.#buffer.subarray(18);
      const option = Buffer.alloc(20 + Buffer.byteLength(name));
      // Fixed newstyle, without zeroes; IHAVEOPT; EXPORT_NAME.
      option.writeUInt32BE(3, 0);
      option.write('IHAVEOPT', 4, 'latin1');
      option.writeUInt32BE(1, 12);
      option.writeUInt32BE(Buffer.byteLength(name), 16);
      option.write(name, 20);
      this.socket.write(option);
      this.timer = setInterval(() => this.#read(), 5);
    }
    // What is answered is not looked into; its size tells how many reads there were.
    if (this.#begun && this.#buffer.length > 10) {
      this.reads += this.#buffer.length / (16 + 4096);
      this.#buffer = this.#buffer.subarray(0, 0);
    }
  }

  #read() {
    const asked = Buffer.alloc(28);
    asked.writeUInt32BE(0x25609513, 0);
    asked.writeBigUInt64BE(BigInt(4096 * Math.floor(Math.random() * (VOLUME_BYTES / 4096))), 16);
    asked.writeUInt32BE(4096, 24);
    this.socket.write(asked);
  }

  end() {
    clearInterval(this.timer);
    this.socket.destroy();
  }
}
