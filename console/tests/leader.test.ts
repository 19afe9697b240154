import { expect, test } from 'vitest';
import { Election, pause, type Channel, type Locks, type Told } from '../src/lib/leader';

/** A browser with tabs: one channel for all, and one lock. */
class Browser {
  #channels = new Set<Fake>();
  #queue: (() => void)[] = [];
  #isHeld = false;
  reads = 0;

  channel(): Fake {
    const own = new Fake((told) => {
      for (const other of this.#channels) if (other !== own) other.onmessage?.({ data: told });
    }, () => this.#channels.delete(own));
    this.#channels.add(own);
    return own;
  }

  locks: Locks = {
    request: async (_, { signal }, held) => {
      if (this.#isHeld) {
        await new Promise<void>((resolve, reject) => {
          this.#queue.push(resolve);
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      }
      this.#isHeld = true;
      try {
        await held();
      } finally {
        this.#isHeld = false;
        this.#queue.shift()?.();
      }
    },
  };
}

class Fake implements Channel {
  onmessage: ((event: { data: Told }) => void) | null = null;
  constructor(private readonly send: (told: Told) => void, private readonly end: () => void) {}
  postMessage(told: Told): void { this.send(told); }
  close(): void { this.end(); }
}

interface Tab {
  election: Election;
  heard: Told[];
  tell: ((told: Told) => void) | null;
  /** Where it was told to go on, once it reads. */
  after: string | null | undefined;
}

function open(browser: Browser, locks: Locks | null = browser.locks): Tab {
  const tab: Tab = { heard: [], tell: null } as unknown as Tab;
  tab.election = new Election('name', {
    channel: browser.channel(),
    locks,
    read: (signal, tell, after) => {
      tab.after = after;
      browser.reads += 1;
      tab.tell = tell;
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    },
    take: (told) => tab.heard.push(told),
  });
  void tab.election.run();
  return tab;
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

test('one tab of eight reads, and all hear', async () => {
  const browser = new Browser();
  const tabs = Array.from({ length: 8 }, () => open(browser));
  await settle();
  expect(browser.reads).toBe(1);
  expect(tabs.filter((tab) => tab.election.isLeading)).toEqual([tabs[0]]);
  tabs[0]!.tell!({ kind: 'data', data: 'x' });
  for (const tab of tabs) expect(tab.heard).toEqual([{ kind: 'data', data: 'x' }]);
});

test('when the leader goes the next one leads, and nobody else', async () => {
  const browser = new Browser();
  const tabs = Array.from({ length: 3 }, () => open(browser));
  await settle();
  tabs[0]!.election.end();
  await settle();
  expect(tabs.map((tab) => tab.election.isLeading)).toEqual([false, true, false]);
  tabs[0]!.tell!({ kind: 'data', data: 'late' });
  tabs[1]!.tell!({ kind: 'data', data: 'y' });
  expect(tabs.map((tab) => tab.heard.length)).toEqual([0, 1, 1]);
});

test('a tab that goes while it waits never leads', async () => {
  const browser = new Browser();
  const [first, second, third] = [open(browser), open(browser), open(browser)];
  await settle();
  second.election.end();
  third.election.end();
  await settle();
  expect(browser.reads).toBe(1);
  expect(first.election.isLeading).toBe(true);
});

test('a new tab is told how the connection is', async () => {
  const browser = new Browser();
  const first = open(browser);
  await settle();
  first.tell!({ kind: 'state', link: 'lost' });
  const second = open(browser);
  await settle();
  expect(second.heard).toEqual([{ kind: 'state', link: 'lost' }]);
});

test('without locks each tab reads by itself', async () => {
  const browser = new Browser();
  open(browser, null);
  open(browser, null);
  await settle();
  expect(browser.reads).toBe(2);
});

test('pauses grow to an end, and are not the same for all', () => {
  const bounds = [0, 1, 2, 5, 50].map((attempt) => [pause(attempt, 0), pause(attempt, 1)]);
  expect(bounds).toEqual([[375, 625], [750, 1250], [1500, 2500], [11_250, 18_750], [11_250, 18_750]]);
});

test('who takes the lead goes on behind the last event that was told', async () => {
  const browser = new Browser();
  const tabs = [open(browser), open(browser)];
  await settle();
  expect(tabs[0]!.after).toBe(null);
  tabs[0]!.tell!({ kind: 'data', data: 'x', id: '7' });
  tabs[0]!.tell!({ kind: 'state', link: 'live', id: '8' });
  tabs[0]!.tell!({ kind: 'data', data: 'a report has no identifier', id: null });
  tabs[0]!.election.end();
  await settle();
  expect(tabs[1]!.after).toBe('8');
});

test('a tab that came late knows the last event, too', async () => {
  const browser = new Browser();
  const first = open(browser);
  await settle();
  first.tell!({ kind: 'state', link: 'live' });
  first.tell!({ kind: 'data', data: 'x', id: '41' });
  const second = open(browser);
  await settle();
  first.election.end();
  await settle();
  expect(second.after).toBe('41');
});
