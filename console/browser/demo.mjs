// The demo with its console, as people start it: it says where, and who may log in.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const LINE = /^console (https:\/\/[^ ]+)\/ (\S+) (\S+)$/;

export class Demo {
  /** It is ready. */
  static async begin(program) {
    const own = new Demo();
    const words = ['demo', '--serve', '--nbd', '127.0.0.1:0', '--console', '127.0.0.1:0'];
    own.process = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    own.gone = new Promise((resolve) => own.process.once('exit', resolve));
    const told = [];
    const lines = createInterface({ input: own.process.stdout });
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        told.push(line);
        const found = LINE.exec(line);
        if (!found) return;
        [, own.origin, own.user, own.password] = found;
        resolve();
      });
      lines.on('close', () => reject(new Error(`the demo ended: ${told.join('\n')}`)));
    });
    return own;
  }

  /** Ends it as a terminal does: its daemon and its files go, too. */
  async end() {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGINT');
    await this.gone;
  }
}
