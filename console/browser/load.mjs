// Requests of a host that never cease, by fio over NBD. An error of one of them is a failure.
import { spawn } from 'node:child_process';

/** What fio is told: small requests, some hundred a second. */
const JOB = ['--name=load', '--ioengine=nbd', '--rw=randrw', '--bs=4k', '--iodepth=4', '--rate_iops=100,100', '--time_based', '--runtime=7200', '--output-format=json'];

export class Load {
  static begin(uri) {
    const own = new Load();
    own.process = spawn('fio', [...JOB, `--uri=${uri}`], { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [own.process.stdout, own.process.stderr]) stream.on('data', (more) => (text += more));
    own.done = new Promise((resolve) => own.process.once('exit', (status) => resolve({ status, text: () => text })));
    return own;
  }

  /** Ends it; all that it asked must have been answered well. */
  async end() {
    // On this signal it ends what is under way, and reports.
    this.process.kill('SIGINT');
    const { text } = await this.done;
    const [start, end] = [text().indexOf('{\n'), text().lastIndexOf('}')];
    const [job] = JSON.parse(text().slice(start, end + 1)).jobs;
    if (job.error !== 0) throw new Error(`a request failed: ${text()}`);
    if (job.write.total_ios === 0) throw new Error(`nothing was written: ${text()}`);
  }
}
