// One stream of events for all tabs: over HTTP/1.1 a browser has six connections to a server, and a
// stream takes one of them for ever.
//
// States of a tab: following (another tab of the same account reads the stream, and tells) →
// leading (it holds the lock, and reads) → gone (closed: the lock is free, and the next tab leads).
// Tabs of different accounts do not share: they may know different things.

/** What tabs tell each other. */
export type Told =
  | { kind: 'hello' }
  | { kind: 'state'; link: Link }
  | { kind: 'data'; data: string };

/** How the connection is. */
export type Link = 'connecting' | 'live' | 'lost';

export interface Channel {
  postMessage(told: Told): void;
  onmessage: ((event: { data: Told }) => void) | null;
  close(): void;
}

export interface Locks {
  request(
    name: string,
    options: { signal: AbortSignal },
    held: () => Promise<void>,
  ): Promise<unknown>;
}

export interface Outside {
  channel: Channel;
  /** None in an old browser or an insecure context: then each tab reads its own stream. */
  locks: Locks | null;
  /** Reads the stream until told to stop. */
  read: (signal: AbortSignal, tell: (told: Told) => void) => Promise<void>;
  /** Takes what is told, by this tab or another. */
  take: (told: Told) => void;
}

export class Election {
  isLeading = false;
  #link: Link = 'connecting';
  #ended = new AbortController();

  constructor(
    private readonly name: string,
    private readonly outside: Outside,
  ) {
    outside.channel.onmessage = ({ data }) => this.#heard(data);
  }

  /** Stands for election until the end. */
  async run(): Promise<void> {
    this.outside.channel.postMessage({ kind: 'hello' });
    const { signal } = this.#ended;
    const lead = async () => {
      this.isLeading = true;
      try {
        await this.outside.read(signal, (told) => this.#tell(told));
      } finally {
        this.isLeading = false;
      }
    };
    if (!this.outside.locks) return lead();
    try {
      await this.outside.locks.request(this.name, { signal }, lead);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Leaves: another tab may lead. */
  end(): void {
    this.#ended.abort();
    this.outside.channel.close();
  }

  #tell(told: Told): void {
    if (this.#ended.signal.aborted) return;
    if (told.kind === 'state') this.#link = told.link;
    this.outside.channel.postMessage(told);
    this.outside.take(told);
  }

  #heard(told: Told): void {
    if (told.kind === 'hello') {
      const isKnown = this.isLeading && this.#link !== 'connecting';
      if (isKnown) this.outside.channel.postMessage({ kind: 'state', link: this.#link });
      return;
    }
    // A leader hears itself only.
    if (!this.isLeading) this.outside.take(told);
  }
}

/** How long to wait before the next attempt, in milliseconds: from half a second to 15 seconds. */
export function pause(attempt: number, chance: number): number {
  const whole = Math.min(15_000, 500 * 2 ** Math.min(attempt, 10));
  return whole * (0.75 + chance / 2);
}
