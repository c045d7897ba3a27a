import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { gatehouseIn } from '../support/gatehouse-command.ts';
import { spawnService } from '../support/service.ts';
import { WITHOUT_GLIBC } from '../support/without-glibc.ts';

/* Linux with musl, on which the embedded PostgreSQL does not run. */
const NODE_OPTIONS = WITHOUT_GLIBC;

test.runIf(process.platform === 'linux')(
  'without glibc a start without a database ends, and says what to do; doctor does too',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'without-glibc-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const child = spawnService(folder, { NODE_OPTIONS });
    let text = '';
    child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(1);
    expect(text).toContain('STORE_UNAVAILABLE');
    expect(text).toContain('is made for glibc, which is not here; set DATABASE_URL');

    const free = { GATEWAY_CONNECT_PORT: '0', GATEWAY_METRICS_PORT: '0' };
    const { out, code: found } = await gatehouseIn(folder, ['doctor'], { ...free, NODE_OPTIONS });
    expect(found).toBe(1);
    expect(out).toMatch(/^fail {2}embedded PostgreSQL: .* is made for glibc, which is not here$/m);
  },
);
