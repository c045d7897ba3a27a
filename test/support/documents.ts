import { globSync } from 'node:fs';

/** Documents that people read: those at the root, of a folder, of a package, and all below docs. */
export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...globSync('{load,proto,findings,clients/*}/README.md'),
  ...globSync('docs/**/*.md'),
].map((path) => path.replaceAll('\\', '/'));
