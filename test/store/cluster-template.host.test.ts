import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { prepareTemplate } from '../../src/store/embedded/embedded-postgres-cluster.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/store/embedded/embedded-postgres.ts';
import { byLength } from '../support/test-length.ts';

let parent: string;
let cache: string;
const servers: EmbeddedPostgres[] = [];
beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'gatehouse-template-'));
  cache = join(parent, 'cache');
  // An installation by two processes at once ends with one template.
  const count = byLength(1, 2);
  await Promise.all(Array.from({ length: count }, () => prepareTemplate(cache)));
}, 120_000);
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

async function start(name: string, events: string[] = [], templateCache = cache) {
  const server = await startEmbeddedPostgres({
    dataDirectory: join(parent, name),
    templateCache,
    log: (_level, event) => void events.push(event),
  });
  servers.push(server);
  return server;
}

/** Equal for clusters that were copied from one, different for any other two. */
async function systemIdentifier(target: EmbeddedPostgres['target']): Promise<string> {
  const client = new Client(target);
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>(
      'select system_identifier::text as id from pg_control_system()',
    );
    return rows[0]?.id ?? '';
  } finally {
    await client.end();
  }
}

describe('the template of an empty cluster', { timeout: 120_000 }, () => {
  it('is one directory, whoever prepares it', async () => {
    expect(readdirSync(cache)).toEqual([expect.stringMatching(/^postgres-\d+\.\d+-[0-9a-f]{8}$/)]);
    const made = statSync(join(cache, readdirSync(cache)[0] ?? ''));
    await prepareTemplate(cache);
    expect(statSync(join(cache, readdirSync(cache)[0] ?? '')).ino).toBe(made.ino);
  });

  it('is copied for each data directory, which has a password of its own', async () => {
    const events: string[] = [];
    const [one, two] = [await start('one', events), await start('two', events)];
    expect(await systemIdentifier(one.target)).toBe(await systemIdentifier(two.target));
    expect(one.target.password).not.toBe(two.target.password);
    const wrong = { ...two.target, password: one.target.password };
    await expect(systemIdentifier(wrong)).rejects.toThrow('password authentication failed');
    expect(statSync(join(parent, 'one', 'postgres')).mode & 0o777).toBe(0o700);
    expect(events).toEqual([]);
  });

  it('is done without where it is damaged, or there is none', async () => {
    const events: string[] = [];
    const copied = await systemIdentifier((await start('copied', events)).target);
    // Each makes a cluster anew.
    for (const name of byLength<string[]>([], ['none'])) {
      const none = await start(name, events, join(parent, 'nothing'));
      expect(await systemIdentifier(none.target)).not.toBe(copied);
    }
    expect(events).toEqual([]);
    rmSync(join(cache, readdirSync(cache)[0] ?? '', 'global', 'pg_control'));
    const damaged = await start('damaged', events);
    expect(await systemIdentifier(damaged.target)).not.toBe(copied);
    expect(events).toEqual(['postgres_template_unusable']);
  });
});
