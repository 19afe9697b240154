// A change from the wish to its end: plan → confirmed → done. One at a time, and each is sent once.
//
// States: planning → shown (or refused, with what the daemon says) → sending → done, or refused.
// A plan that no longer fits is shown anew; it has to be confirmed anew.
//
// Invariants
// - What is being sent is not closed: nobody takes that for the end of the change.
// - A wish is its user's: it is forgotten when somebody else logs in.

import { ApiError, type Planned } from './http';
import { live } from './live.svelte';

export interface Wish {
  /** What is done, as a title: `Delete volume`. */
  title: string;
  /** The button that does it. */
  verb: string;
  /** What it does not do, or what follows of it, where the plan does not tell. */
  note?: string;
  method: 'POST' | 'PATCH' | 'DELETE';
  uri: string;
  body?: unknown;
  /** The ETag of what it acts on, as the reader saw it. */
  etag?: string | undefined;
  /** What has to be typed where it destroys. */
  name: string;
  /** What to read anew. */
  wants: string[];
  /** Called once it is done. */
  done?: (answer: unknown) => void;
}

class Flow {
  wish = $state.raw<Wish | null>(null);
  planned = $state.raw<Planned | null>(null);
  error = $state.raw<ApiError | null>(null);
  isBusy = $state(false);
  /** A change is under way, and can't be taken back. */
  isSending = $state(false);
  /** What was done last, for a moment. */
  told = $state('');
  /** What was refused last, until it is read. */
  refused = $state.raw<{ title: string; error: ApiError } | null>(null);

  /** Asks for the plan of a change, and shows it. */
  async ask(wish: Wish): Promise<void> {
    this.wish = wish;
    this.planned = null;
    this.error = null;
    this.isBusy = true;
    // An answer that comes after the reader turned to something else is of no use.
    try {
      const planned = await live.client.plan(wish.method, wish.uri, wish.body);
      if (this.wish === wish) this.planned = planned;
    } catch (error) {
      if (this.wish === wish) this.error = asError(error);
    } finally {
      if (this.wish === wish) this.isBusy = false;
    }
  }

  /** Does what was shown. */
  async confirm(): Promise<void> {
    const { wish, planned } = this;
    if (!wish || !planned || this.isBusy) return;
    this.isBusy = true;
    this.isSending = true;
    this.error = null;
    try {
      const answer = await live.client.change(wish.method, wish.uri, wish.body, {
        ...(wish.etag ? { 'If-Match': wish.etag } : {}),
        'Palisade-Confirm': planned.token,
      });
      live.want('log', ...wish.wants);
      // Who logged out meanwhile is not led on.
      if (this.wish !== wish) return;
      this.#clear();
      this.say(`${wish.title}: done`);
      wish.done?.(answer.body);
    } catch (error) {
      if (this.wish !== wish) return;
      const own = asError(error);
      this.error = own;
      // What somebody changed meanwhile needs another look, and another plan.
      if (own.planned || own.status === 412) this.planned = own.planned;
      live.want(...wish.wants);
    } finally {
      if (this.wish === wish) this.isBusy = this.isSending = false;
    }
  }

  /** A change that needs no plan, such as a pause. */
  async act(title: string, uri: string, wants: string[], method: 'POST' | 'PATCH' = 'POST', body: unknown = {}): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    this.refused = null;
    try {
      await live.client.change(method, uri, body);
      this.say(`${title}: done`);
    } catch (error) {
      this.refused = { title, error: asError(error) };
    } finally {
      this.isBusy = false;
      live.want('log', ...wants);
    }
  }

  say(text: string): void {
    this.told = text;
    setTimeout(() => {
      if (this.told === text) this.told = '';
    }, 6000);
  }

  /** Turns away from a wish that was not sent. */
  close(): void {
    if (!this.isSending) this.#clear();
  }

  /** Somebody else is here, or nobody. */
  forget(): void {
    this.#clear();
    this.told = '';
    this.refused = null;
  }

  #clear(): void {
    this.wish = null;
    this.planned = null;
    this.error = null;
    this.isBusy = false;
    this.isSending = false;
  }
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, '', String(error), '');
}

export const flow = new Flow();
