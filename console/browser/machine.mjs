// The emulated machine that the daemon runs in, where there is one: what a page cannot do is asked
// for on the standard output, in lines `@ WORD ARGUMENT`, each of which is answered on the standard
// input: `done`, or why not. script/guest.d/console.sh tells the words.
import { createInterface } from 'node:readline';

export class Machine {
  #answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

  async ask(...words) {
    console.log(`@ ${words.join(' ')}`);
    const { value, done } = await this.#answers.next();
    if (done || value !== 'done') throw new Error(`${words[0]}: ${value ?? 'no answer'}`);
  }

  /** Requests to an export, from beside the daemon, until they are ended. */
  async load(uri) {
    await this.ask('load', uri);
    return { end: () => this.ask('rest') };
  }

  /** Takes a drive out. */
  unplug(serial) {
    return this.ask('unplug', serial);
  }

  end() {
    process.stdin.destroy();
  }
}
