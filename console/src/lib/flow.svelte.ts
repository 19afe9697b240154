// A change from the wish to its end: plan → confirmed → done. One at a time, and each is sent once.
//
// States: planning → shown (or refused, with what the daemon says) → sending → done, or refused.
// A plan that no longer fits is shown anew; it has to be confirmed anew.

import { ApiError, type Planned } from './http';
import { live } from './live.svelte';

export interface Wish {
  /** What is done, as a title: `Delete volume`. */
  title: string;
  /** The button that does it. */
  verb: string;
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
  /** What was done last, for a moment. */
  told = $state('');

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
    this.error = null;
    try {
      const answer = await live.client.change(wish.method, wish.uri, wish.body, {
        ...(wish.etag ? { 'If-Match': wish.etag } : {}),
        'Palisade-Confirm': planned.token,
      });
      live.want('log', ...wish.wants);
      if (this.wish === wish) this.wish = null;
      this.say(`${wish.title}: done`);
      wish.done?.(answer.body);
    } catch (error) {
      const own = asError(error);
      if (this.wish === wish) {
        this.error = own;
        if (own.planned) this.planned = own.planned;
      } else {
        this.say(`${wish.title}: ${own.message} ${own.resolution}`.trim());
      }
      live.want(...wish.wants);
    } finally {
      if (this.wish === wish || !this.wish) this.isBusy = false;
    }
  }

  /** A change that needs no plan, such as a pause. */
  async act(title: string, uri: string, wants: string[], method: 'POST' | 'PATCH' = 'POST', body: unknown = {}): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      await live.client.change(method, uri, body);
      this.say(`${title}: done`);
    } catch (error) {
      const own = asError(error);
      this.say(`${title}: ${own.message} ${own.resolution}`.trim());
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

  close(): void {
    this.wish = null;
    this.planned = null;
    this.error = null;
    this.isBusy = false;
  }
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, '', String(error), '');
}

export const flow = new Flow();
