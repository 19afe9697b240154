// Requests to the daemon. Invariants: the token goes in a header and nowhere else; a change is sent
// once, whatever happens to its answer; what the daemon says of an error is what a person reads.

import type { Plan } from './redfish';

export const ROOT = '/redfish/v1';

/** An error as the daemon words it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly id: string,
    message: string,
    readonly resolution: string,
    /** A refusal to destroy comes with the plan, and the token that confirms it. */
    readonly planned: Planned | null = null,
  ) {
    super(message);
  }

  /** Whether the daemon could not be reached at all. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

export interface Planned {
  plan: Plan;
  token: string;
  expires: string;
}

export interface Answer<T> {
  status: number;
  body: T;
  etag: string | null;
  location: string | null;
  token: string | null;
}

/** What an error's body says. */
export function errorOf(status: number, body: unknown): ApiError {
  const top = (body ?? {}) as Record<string, unknown>;
  const error = (top.error ?? {}) as Record<string, unknown>;
  const info = (error['@Message.ExtendedInfo'] as Record<string, string>[] | undefined)?.[0];
  const id = (info?.MessageId ?? String(error.code ?? '')).split('.').pop() ?? '';
  const message = info?.Message ?? (error.message as string) ?? `The daemon answered ${status}.`;
  let resolution = info?.Resolution ?? '';
  if (status === 412 && id === 'PreconditionFailed') {
    return new ApiError(
      status,
      id,
      'Somebody changed this while you were looking at it.',
      'Look at what it is now, then decide again. Nothing was done.',
    );
  }
  if (resolution.toLowerCase() === 'nothing') resolution = '';
  return new ApiError(status, id, message, resolution, planOf(top));
}

/** The plan in an answer, if there is one. */
export function planOf(body: unknown): Planned | null {
  const top = (body ?? {}) as Record<string, unknown>;
  if (!top.Plan || typeof top.Token !== 'string') return null;
  return { plan: top.Plan as Plan, token: top.Token, expires: String(top.Expires ?? '') };
}

const LOST = 'The daemon can’t be reached.';
const UNKNOWN = 'It is not known whether the change was made. Look before you make it again.';
/** So many reads of how a change goes on may fail, a second apart. */
const PATIENCE = 120;

export class Client {
  token: string | null = null;
  /** Called once where the session has ended: the daemon refused the token that is used now. */
  onExpired: () => void = () => {};
  /** Called with whether the daemon could be reached. */
  onReach: (is: boolean) => void = () => {};
  /** Whether what pages show is old. */
  isLost: () => boolean = () => false;
  #known = new Map<string, Answer<unknown>>();

  constructor(
    private readonly send: typeof fetch = (...args) => fetch(...args),
    private readonly pause = (milliseconds: number) => new Promise<unknown>((done) => setTimeout(done, milliseconds)),
  ) {}

  forget(): void {
    this.token = null;
    this.#known.clear();
  }

  /** The daemon refused this token. One that was replaced meanwhile says nothing of the session. */
  refused(token: string | null): void {
    if (token === null || token !== this.token) return;
    this.forget();
    this.onExpired();
  }

  headers(more: Record<string, string> = {}): Record<string, string> {
    const own: Record<string, string> = { 'X-Requested-With': 'palisade-console', ...more };
    if (this.token) own['X-Auth-Token'] = this.token;
    return own;
  }

  /** Reads a resource. One that has not changed is not sent again: the same object comes back. */
  async get<T>(uri: string, signal?: AbortSignal): Promise<T> {
    const known = this.#known.get(uri);
    const more: Record<string, string> = known?.etag ? { 'If-None-Match': known.etag } : {};
    const limit = AbortSignal.timeout(20_000);
    const until = signal ? AbortSignal.any([signal, limit]) : limit;
    const answer = await this.#ask<T>('GET', uri, undefined, more, until);
    if (answer.status === 304 && known) return known.body as T;
    if (answer.etag) {
      this.#known.set(uri, answer);
      // The oldest go first: audit lines and the like are not kept for ever.
      if (this.#known.size > 300) {
        const oldest = this.#known.keys().next().value;
        if (oldest) this.#known.delete(oldest);
      }
    }
    return answer.body;
  }

  /** Whether a resource is there, and what it is. */
  async find<T>(uri: string): Promise<T | null> {
    try {
      return await this.get<T>(uri);
    } catch (error) {
      if (error instanceof ApiError && [403, 404].includes(error.status)) return null;
      throw error;
    }
  }

  /** All members of a collection, page by page; with more levels, what stands in them, too. */
  async all<T>(uri: string, size = 250, levels = 1): Promise<T[]> {
    const expand = levels > 1 ? `.($levels=${levels})` : '.';
    for (let attempt = 0; ; attempt += 1) {
      const found: T[] = [];
      let tag: unknown;
      let isOneMoment = true;
      for (;;) {
        const page = await this.get<Record<string, unknown>>(
          `${uri}?$expand=${expand}&$top=${size}&$skip=${found.length}`,
        );
        tag ??= page['@odata.etag'];
        isOneMoment &&= tag === page['@odata.etag'];
        const members = (page.Members ?? []) as T[];
        found.push(...members);
        const total = Number(page['Members@odata.count'] ?? 0);
        if (members.length === 0 || found.length >= total) break;
      }
      if (isOneMoment || attempt >= 3) return found;
    }
  }

  /** Sends a change, once. One that takes long is waited for. */
  async change(
    method: 'POST' | 'PATCH' | 'DELETE',
    uri: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<Answer<unknown>> {
    this.#insist(uri);
    const answer = await this.#ask<unknown>(method, uri, body, more);
    return answer.status === 202 && answer.location ? this.#outcome(answer.location) : answer;
  }

  /** How a change that goes on ends. Reads that fail change nothing of it: they are made again. */
  async #outcome(monitor: string): Promise<Answer<unknown>> {
    for (let failures = 0; ; ) {
      await this.pause(1000);
      try {
        const answer = await this.#ask<unknown>('GET', monitor);
        if (answer.status !== 202) return { ...answer, location: answer.location ?? monitor };
        failures = 0;
      } catch (error) {
        if (!(error instanceof ApiError) || ![0, 503].includes(error.status)) throw error;
        failures += 1;
        if (failures >= PATIENCE) throw new ApiError(0, 'Unreachable', LOST, UNKNOWN);
      }
    }
  }

  /** Old values are no ground for a change: none is sent while the connection is lost. Who logs in
   * or out looks at none. */
  #insist(uri: string): void {
    if (!this.isLost() || uri.startsWith(`${ROOT}/SessionService/`)) return;
    throw new ApiError(0, 'Unreachable', LOST, 'What you see is old: nothing was sent. Wait until the connection is back.');
  }

  /** What a change would do; nothing is done. */
  async plan(method: 'POST' | 'PATCH' | 'DELETE', uri: string, body?: unknown): Promise<Planned> {
    this.#insist(uri);
    const answer = await this.#ask<unknown>(method, uri, body, { 'Palisade-Plan': 'only' });
    const planned = planOf(answer.body);
    if (!planned) throw new ApiError(answer.status, '', 'The daemon gave no plan.', '');
    return planned;
  }

  async #ask<T>(
    method: string,
    uri: string,
    body?: unknown,
    more: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Answer<T>> {
    const headers = this.headers(more);
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    let response: Response;
    let text: string;
    try {
      const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'omit' };
      if (body !== undefined) init.body = JSON.stringify(body);
      if (signal) init.signal = signal;
      response = await this.send(uri, init);
      text = await response.text();
    } catch {
      this.onReach(false);
      const advice =
        method === 'GET'
          ? 'It is tried again by itself.'
          : UNKNOWN;
      throw new ApiError(0, 'Unreachable', LOST, advice);
    }
    this.onReach(true);
    const parsed = parse(text);
    if (response.status === 401) this.refused(headers['X-Auth-Token'] ?? null);
    if (response.status >= 400) throw errorOf(response.status, parsed);
    return {
      status: response.status,
      body: parsed as T,
      etag: response.headers.get('ETag'),
      location: response.headers.get('Location'),
      token: response.headers.get('X-Auth-Token'),
    };
  }
}

function parse(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
