// A daemon for tests and measurements: the program as a child, on drives that are sparse files, in a
// folder that goes with it.
//
// States: made (its folder is there) → ready, by `start` → ended, by `stop`, after which it can be
// started again → gone, by `end`.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A text of JSON is one of TOML. */
export const text = JSON.stringify;

export class Served {
  #process = null;

  /** In a new folder of this one, whose name begins so. */
  constructor(program, folder, name) {
    this.program = program;
    this.folder = mkdtempSync(join(folder, name));
    // Users of shares come through it.
    chmodSync(this.folder, 0o711);
    this.socket = this.path('socket');
  }

  path(name) {
    return join(this.folder, name);
  }

  /** Makes an empty drive of so many bytes; its path. */
  drive(name, bytes) {
    const path = this.path(name);
    writeFileSync(path, '');
    truncateSync(path, bytes);
    return path;
  }

  configure(lines) {
    writeFileSync(this.path('palisade.toml'), [...lines, ''].join('\n'));
  }

  /** Starts it, also again; it is ready. */
  async start() {
    const log = openSync(this.path('daemon.log'), 'a');
    const words = ['serve', '--config', this.path('palisade.toml')];
    const own = spawn(this.program, words, { stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    this.#process = own;
    const lines = createInterface({ input: own.stdout });
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => line === 'ready' && resolve());
      own.once('error', reject);
      own.once('exit', () => reject(new Error(`the daemon did not become ready: ${this.said()}`)));
    });
  }

  /** What it logged. */
  said() {
    return readFileSync(this.path('daemon.log'), 'utf8').trimEnd();
  }

  /** Runs a command of the command line, which must succeed; its object. */
  command(words, input = '') {
    const env = { ...process.env, PALISADE_SOCKET: this.socket };
    delete env.PALISADE_URL;
    const done = spawnSync(this.program, [...words, '--json'], { input, env, encoding: 'utf8' });
    if (done.status === 0) return JSON.parse(done.stdout);
    throw new Error(`palisade ${words.slice(0, 3).join(' ')}: ${done.error ?? done.stderr.trimEnd()}`);
  }

  /** Makes an Administrator. */
  administrator(user, password) {
    this.command(['account', 'create', user, '--role', 'Administrator', '--password-stdin'], `${password}\n`);
  }

  /** Ends it by a signal. */
  async stop(signal) {
    const own = this.#process;
    this.#process = null;
    if (!own?.pid || own.exitCode !== null || own.signalCode !== null) return;
    const gone = new Promise((resolve) => own.once('exit', resolve));
    own.kill(signal);
    await gone;
  }

  /** Ends it, and clears away. */
  async end() {
    await this.stop('SIGTERM');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
