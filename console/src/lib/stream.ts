// Reads the daemon's stream of events and reports, and comes back when it breaks.

import { Parser } from './sse';
import { pause, type Told } from './leader';
import { ROOT } from './http';

const FILTER = "EventFormatType eq 'Event' or EventFormatType eq 'MetricReport'";
const URI = `${ROOT}/EventService/SSE?$filter=${encodeURIComponent(FILTER)}`;
/** The daemon says something at least each 15 seconds; and each second, once reports have come. */
const QUIET = 20_000;
const QUIET_OF_REPORTS = 8_000;

export interface Source {
  headers: () => Record<string, string>;
  /** The session of this token has ended: without a newer one there is no coming back. */
  expired: (token: string | null) => void;
}

/**
 * Reads until told to stop. After a break it asks for what it missed, as it does at first where it
 * knows the last event that was heard; where none is known, something may have been missed, and that
 * is said once the stream is open.
 */
export async function read(
  source: Source,
  signal: AbortSignal,
  tell: (told: Told) => void,
  after: string | null = null,
  send: typeof fetch = (...args) => fetch(...args),
): Promise<void> {
  let lastId = after;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    if (attempt > 0) {
      tell({ kind: 'state', link: 'lost' });
      await rest(pause(attempt - 1, Math.random()), signal);
      if (signal.aborted) return;
    }
    const broken = new AbortController();
    let watchdog = setTimeout(() => broken.abort(), QUIET);
    try {
      const headers = source.headers();
      if (lastId) headers['Last-Event-ID'] = lastId;
      const both = AbortSignal.any([signal, broken.signal]);
      const init = { headers, cache: 'no-store', credentials: 'omit', signal: both } as const;
      const isBlind = lastId === null;
      const response = await send(URI, init);
      if (response.status === 401) {
        const token = headers['X-Auth-Token'] ?? null;
        source.expired(token);
        // There is a newer session, and it goes on.
        const newer = source.headers()['X-Auth-Token'] ?? null;
        if (newer === null || newer === token) return;
        continue;
      }
      if (!response.ok || !response.body) continue;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      let hasReports = false;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(watchdog);
        hasReports ||= value.includes('MetricValues');
        watchdog = setTimeout(() => broken.abort(), hasReports ? QUIET_OF_REPORTS : QUIET);
        if (attempt !== -1) {
          attempt = -1;
          tell({ kind: 'state', link: 'live', id: lastId, missed: isBlind });
        }
        for (const message of parser.push(value)) {
          tell({ kind: 'data', data: message.data, id: message.id ?? lastId });
        }
        if (parser.lastId !== null && parser.lastId !== lastId) {
          // An identifier without data: the tabs that follow know it, too.
          lastId = parser.lastId;
          tell({ kind: 'state', link: 'live', id: lastId });
        }
      }
      attempt = 0;
    } catch {
      if (attempt < 0) attempt = 0;
    } finally {
      clearTimeout(watchdog);
    }
  }
}

/** Waits; a network that comes back, or the end, ends the wait. */
function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener('online', done);
    signal.addEventListener('abort', done);
  });
}
