// Which page is shown: the path of the address bar, without loading anything.

import { tick } from 'svelte';

class Router {
  path = $state(location.pathname);

  constructor() {
    addEventListener('popstate', () => (this.path = location.pathname));
    addEventListener('click', (event) => this.#clicked(event));
  }

  /** To a page, and to a part of it. */
  go(path: string, hash = ''): void {
    if (path !== location.pathname) history.pushState(null, '', path + hash);
    this.path = path;
    window.scrollTo(0, 0);
    if (hash) void tick().then(() => document.getElementById(decodeURIComponent(hash.slice(1)))?.scrollIntoView());
  }

  /** The parts of the path, decoded: `/drives/a%20b` is `drives`, `a b`. */
  get parts(): string[] {
    const parts = this.path.split('/').filter((part) => part !== '');
    try {
      return parts.map(decodeURIComponent);
    } catch {
      return parts;
    }
  }

  /** A plain click of a link of ours changes the page; all others are the browser's. */
  #clicked(event: MouseEvent): void {
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute('download')) return;
    // Within a page the browser goes to its part.
    if (link.pathname.startsWith('/redfish') || (link.hash && link.pathname === location.pathname)) return;
    event.preventDefault();
    this.go(link.pathname, link.hash);
  }
}

export const router = new Router();
