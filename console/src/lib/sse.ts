// Server-Sent Events (HTML Standard, "Server-sent events"), read by hand: `EventSource` can send no
// token.

/** One message of a stream. */
export interface Message {
  /** The identifier of the last event, if the stream gave one. */
  id: string | null;
  data: string;
}

/** Cuts a stream into messages, however its bytes are cut. A block without data only moves the id. */
export class Parser {
  #rest = '';
  #data: string[] = [];
  /** The last identifier that came, with or without data. */
  lastId: string | null = null;

  push(text: string): Message[] {
    const found: Message[] = [];
    // A line ends by CR LF, LF or CR. A CR at the end may be half of a CR LF: it waits.
    let all = this.#rest + text;
    const waits = all.endsWith('\r');
    if (waits) all = all.slice(0, -1);
    const lines = all.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + (waits ? '\r' : '');
    for (const line of lines) {
      const message = this.#line(line);
      if (message) found.push(message);
    }
    return found;
  }

  #line(line: string): Message | null {
    if (line === '') {
      if (this.#data.length === 0) return null;
      const message = { id: this.lastId, data: this.#data.join('\n') };
      this.#data = [];
      return message;
    }
    const at = line.indexOf(':');
    const field = at < 0 ? line : line.slice(0, at);
    let value = at < 0 ? '' : line.slice(at + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'data') this.#data.push(value);
    if (field === 'id' && !value.includes('\0')) this.lastId = value;
    return null;
  }
}
