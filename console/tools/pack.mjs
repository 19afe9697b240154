// Packs what Vite built: each file by gzip beside it, and index.rs, the table that the daemon
// holds. The compressor is plain JavaScript: every Node and every processor makes the same bytes.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'fflate';

const dist = new URL('../dist/', import.meta.url);
const kinds = {
  css: 'text/css;charset=utf-8',
  html: 'text/html;charset=utf-8',
  js: 'text/javascript;charset=utf-8',
  svg: 'image/svg+xml',
};

const names = ['index.html', ...readdirSync(new URL('assets/', dist)).sort().map((n) => `assets/${n}`)];
let total = 0;
const rows = names.map((name) => {
  const plain = readFileSync(new URL(name, dist));
  const gzip = gzipSync(plain, { level: 9, mtime: 0 });
  // Byte 9 names the system that packed it: "unknown".
  gzip[9] = 255;
  writeFileSync(new URL(`${name}.gz`, dist), gzip);
  total += gzip.length;
  const kind = kinds[name.split('.').pop()];
  if (!kind) throw new Error(`${name}: of no known type`);
  return `    crate::File {
        path: "/${name === 'index.html' ? '' : name}",
        kind: "${kind}",
        hash: "${createHash('sha256').update(plain).digest('hex').slice(0, 16)}",
        plain: include_bytes!("${name}"),
        gzip: include_bytes!("${name}.gz"),
    },
`;
});
writeFileSync(
  new URL('index.rs', dist),
  `//! The console's files, as \`script/console build\` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
${rows.join('')}];
`,
);
console.log(`${names.length} files, ${(total / 1024).toFixed(1)} KiB by gzip`);
