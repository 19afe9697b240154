// Light or dark: as the system says, or as the reader chose.

export type Choice = 'system' | 'light' | 'dark';
const KEPT = 'palisade-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  choice = $state<Choice>((localStorage.getItem(KEPT) as Choice | null) ?? 'system');
  #systemIsDark = $state(system.matches);
  isDark = $derived(this.choice === 'dark' || (this.choice === 'system' && this.#systemIsDark));

  constructor() {
    system.addEventListener('change', () => {
      this.#systemIsDark = system.matches;
      this.apply();
    });
  }

  apply(): void {
    document.documentElement.dataset.theme = this.isDark ? 'dark' : 'light';
  }

  next(): void {
    const order: Choice[] = ['system', 'light', 'dark'];
    this.choice = order[(order.indexOf(this.choice) + 1) % order.length]!;
    if (this.choice === 'system') localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, this.choice);
    this.apply();
  }
}

export const theme = new Theme();
