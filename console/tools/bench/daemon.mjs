// The daemon that the console is measured with: with arrays, an account and HTTPS; and a host that
// reads a volume over NBD.
//
// States: started → ready → listening (an account made, HTTPS open, logged in) → gone, by `end`,
// which removes its folder.
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { Served, text } from '../served.mjs';

const STORAGE = '/redfish/v1/Systems/local/Storage/palisade';
export const VOLUMES = `${STORAGE}/Volumes`;
const SESSIONS = '/redfish/v1/SessionService/Sessions';
const ARRAYS = 4;
const WIDTH = 6;
const DRIVE_BYTES = 512 * 2 ** 20;
export const VOLUME_BYTES = 4 * 2 ** 20;
export const USER = 'bench';

export class Daemon extends Served {
  #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  #made = 0;
  password = randomBytes(16).toString('hex');

  /** Starts it in a folder of this one, and makes its arrays: 24 drives in 4 arrays. */
  static async begin(program, folder) {
    const own = new Daemon(program, folder, 'palisade-bench-console-');
    try {
      await own.#prepare();
    } catch (error) {
      await own.end();
      throw error;
    }
    return own;
  }

  async #prepare() {
    const name = (at) => `drive-${String(at).padStart(2, '0')}.img`;
    const drives = Array.from({ length: ARRAYS * WIDTH }, (_, at) => this.drive(name(at), DRIVE_BYTES));
    this.configure([
      `socket = ${text(this.socket)}`,
      'cores = 1',
      `drives = [${text(this.path('drive-*.img'))}]`,
      'parity = "cpu"',
      'confirm = "off"',
      `state = ${text(this.path('state'))}`,
      'https = ["127.0.0.1:0"]',
      '[access]',
      `administrators = ["root", "${process.getuid()}"]`,
    ]);
    await this.start();
    for (let at = 0; at < ARRAYS; at += 1) {
      const own = drives.slice(at * WIDTH, (at + 1) * WIDTH);
      this.command(['array', 'create', `a${at}`, '--level', '5', '--drives', ...own]);
    }
    this.administrator(USER, this.password);
    this.port = await this.#port();
    this.origin = `https://127.0.0.1:${this.port}`;
    const body = { UserName: USER, Password: this.password };
    const session = await this.ask('POST', SESSIONS, body);
    this.token = session.headers['x-auth-token'];
    this.pools = (await this.ask('GET', `${STORAGE}/StoragePools`)).body.Members;
  }

  async #port() {
    for (let look = 0; look < 6000; look += 1) {
      const found = /HTTPS on 127\.0\.0\.1:(\d+),/.exec(this.said());
      if (found) return Number(found[1]);
      await new Promise((done) => setTimeout(done, 10));
    }
    throw new Error(`no HTTPS: ${this.said()}`);
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

  end() {
    this.#agent.destroy();
    return super.end();
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
