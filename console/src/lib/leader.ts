// One stream of events for all tabs: over HTTP/1.1 a browser has six connections to a server, and a
// stream takes one of them for ever.
//
// States of a tab: following (another tab of the same account reads the stream, and tells) →
// leading (it holds the lock, and reads) → gone (closed: the lock is free, and the next tab leads).
// Tabs of different accounts do not share: they may know different things.
//
// Invariant: a tab that takes the lead goes on behind the last event that it heard: whoever led
// before told the event's identifier with it, and the daemon sends what came since. A tab that heard
// none can't know what it missed: it says so (`missed`), and all tabs read everything anew.

/** What tabs tell each other. */
export type Told =
  | { kind: 'hello' }
  /** `id`: the last event so far; `missed`: events may have been lost, read everything anew. */
  | { kind: 'state'; link: Link; id?: string | null; missed?: boolean }
  /** `id`: the event's, or that of the last one where it has none. */
  | { kind: 'data'; data: string; id?: string | null };

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
  /** Reads the stream, from behind an event if one is known, until told to stop. */
  read: (signal: AbortSignal, tell: (told: Told) => void, after: string | null) => Promise<void>;
  /** Takes what is told, by this tab or another. */
  take: (told: Told) => void;
}

export class Election {
  isLeading = false;
  #link: Link = 'connecting';
  #lastId: string | null = null;
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
        await this.outside.read(signal, (told) => this.#tell(told), this.#lastId);
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
    this.#note(told);
    this.outside.channel.postMessage(told);
    this.outside.take(told);
  }

  #heard(told: Told): void {
    if (told.kind === 'hello') {
      const isKnown = this.isLeading && this.#link !== 'connecting';
      const id = this.#lastId === null ? {} : { id: this.#lastId };
      if (isKnown) this.outside.channel.postMessage({ kind: 'state', link: this.#link, ...id });
      return;
    }
    // A leader hears itself only.
    if (this.isLeading) return;
    this.#note(told);
    this.outside.take(told);
  }

  #note(told: Told): void {
    if (told.kind === 'hello') return;
    if (told.kind === 'state') this.#link = told.link;
    this.#lastId = told.id ?? this.#lastId;
  }
}

/** How long to wait before the next attempt, in milliseconds: from half a second to 15 seconds. */
export function pause(attempt: number, chance: number): number {
  const whole = Math.min(15_000, 500 * 2 ** Math.min(attempt, 10));
  return whole * (0.75 + chance / 2);
}
