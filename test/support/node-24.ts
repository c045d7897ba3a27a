import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../scripts/allowed-skips.ts';

/** Where `npm run test:tools` puts it. */
const BROUGHT = 'node_modules/.cache/test-tools/bin/node24';

/** Node.js 24: that of NODE_24, one that is `node24` on the PATH, or the one that `npm run test:tools` brought; undefined where there is none. */
export function findNode24(): string | undefined {
  const named = process.env['NODE_24'] ?? findProgram('node24', process.env);
  if (named !== undefined) return named;
  const brought = join(process.cwd(), BROUGHT);
  return existsSync(brought) ? brought : undefined;
}
