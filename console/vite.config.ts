// How the console is built: names with hashes, nothing inline, and nothing that depends on the
// machine, so that a build can be compared byte by byte with the one before.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// A daemon to develop against: `script/console dev https://127.0.0.1:8443`.
const daemon = process.env.PALISADE_CONSOLE_DAEMON ?? 'https://127.0.0.1:8443';

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      output: { hashCharacters: 'hex' },
    },
  },
  server: {
    proxy: { '/redfish': { target: daemon, secure: false, changeOrigin: true } },
  },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
});
