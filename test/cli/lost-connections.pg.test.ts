import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pruneChanges } from '../../src/store/feed/retention.ts';
import { call } from '../support/service.ts';
import { linesOf, plainTuples, postLines } from '../tuples/support.ts';
import { plain, tupleLines, tupleCommands } from './tuple-commands-service.ts';

/* The commands of tuples while connections are cut where it hurts. */

const { database, instance, folder, start, gatehouse, way, file, textOf } = await tupleCommands();

describe('a lost connection', () => {
  test('an export goes on, by itself or with --resume, and nothing is missing', async () => {
    const { baseUrl, token } = instance;
    await postLines({ baseUrl, token }, '?tenant_id=cut', linesOf(plainTuples(3_000)));
    const whole = tupleLines((await gatehouse(['export', '-t', 'cut'])).out);
    expect(whole).toHaveLength(3_000);
    const { url, ...cuts } = await way();
    cuts.cutAfterReceived(150_000);
    const cut = await gatehouse(['export', '-t', 'cut', '--out', 'cut.ndjson'], { url });
    expect(cut.err.split('\n')[0]).toMatch(/; the export goes on$/);
    expect(plain(cut).err.split('\n').slice(1)).toEqual([
      'cut.ndjson: exported 3000 tuples, N/s; consistency token TOKEN',
      '',
    ]);
    expect([cut.code, tupleLines(textOf('cut.ndjson'))]).toEqual([0, whole]);

    cuts.cutAfterReceived(150_000);
    const ends = ['export', '-t', 'cut', '--out', 'resumed.ndjson', '--retries', '0'];
    const ended = await gatehouse(ends, { url });
    expect(ended.code).toBe(4);
    const [, kept = ''] =
      /resumed\.ndjson\.part has (\d+) tuples: --resume goes on with it\n$/.exec(ended.err) ?? [];
    expect(Number(kept)).toBeGreaterThan(0);
    expect(tupleLines(textOf('resumed.ndjson.part'))).toHaveLength(Number(kept));
    // As a process that was killed leaves it.
    writeFileSync(join(folder, 'resumed.ndjson.part'), '{"tuple":{"namespa', { flag: 'a' });
    expect((await gatehouse([...ends, '--resume'], { url })).code).toBe(0);
    expect(tupleLines(textOf('resumed.ndjson'))).toEqual(whole);
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);

    cuts.cutAfterReceived(150_000);
    const piped = await gatehouse(['export', '-t', 'cut'], { url });
    expect([piped.code, tupleLines(piped.out)]).toEqual([0, whole]);
    // The service takes it for whole.
    for (const name of ['cut.ndjson', 'resumed.ndjson']) {
      const back = await gatehouse(['import', name, '-t', 'back', '--dry-run']);
      expect(plain(back)).toMatchObject({ code: 0, err: '' });
      expect(back.out).toMatch(/^3000 tuples received, nothing written: a dry run/);
    }
  });

  test('an import with an id is sent again', async () => {
    const { url, ...cuts } = await way();
    const lines = file('sent.ndjson', linesOf(plainTuples(3_000)));
    cuts.cutAfterSent(150_000);
    const ended = await gatehouse(['import', lines, '-t', 'sent'], { url });
    expect(ended.code).toBe(4);
    expect(ended.err).toMatch(
      /; some may be written: send it again; with --import-id it goes on where it ended\n$/,
    );
    cuts.cutAfterSent(150_000);
    const again = await gatehouse(['import', lines, '-t', 'sent', '--import-id', 'a'], { url });
    expect(plain(again)).toMatchObject({
      code: 0,
      out: '3000 tuples received, 3000 written, 0 unchanged; consistency token TOKEN\n',
    });
    expect(again.err).toMatch(/^http:.*; the import is sent again\n$/);
  });

  test('a watch goes on behind its last message', async () => {
    const { url, ...cuts } = await way();
    const write = async (tenant: string, op: string, user: string): Promise<string> => {
      const tuple = { namespace: 'doc', object_id: 'w', relation: 'viewer' };
      const update = { op, tuple: { ...tuple, subject: { user_id: user } } };
      const body = { tenant_id: tenant, updates: [update] };
      const answer = await call(instance, 'AuthzService/WriteRelationTuples', body);
      return (answer.body as { consistency_token: string }).consistency_token;
    };
    const filter = ['--namespace', 'doc', '--heartbeat', '1'];
    const one = start(['watch', '-t', 'watched', ...filter, '--count', '3'], { url });
    const all = start(['watch', '--all-tenants', ...filter, '--count', '4', '--jsonl'], { url });
    const followed = `following ${url}\n`;
    await expect.poll(() => [one.err(), all.err()]).toEqual([followed, followed]);
    const first = await write('watched', 'OP_INSERT', 'ann');
    await write('other', 'OP_INSERT', 'ann');
    cuts.cut();
    await write('watched', 'OP_INSERT', 'bob');
    const again = `following ${url} again\n`;
    await expect
      .poll(() => [one.err().endsWith(again), all.err().endsWith(again)])
      .toEqual([true, true]);
    await write('watched', 'OP_DELETE', 'ann');
    const shown = await one.ended;
    expect(plain(shown)).toMatchObject({
      code: 0,
      out: `+ doc:w#viewer@user:ann  TIME  …TOKEN
+ doc:w#viewer@user:bob  TIME  …TOKEN
- doc:w#viewer@user:ann  TIME  …TOKEN
`,
    });
    expect(shown.err).toContain('; goes on behind the last message\n');
    const { code, out } = await all.ended;
    const messages = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { changes?: { tenant_id: string; updates: object[] } });
    const changes = messages.flatMap(({ changes: found }) => (found === undefined ? [] : found));
    expect([code, changes.map(({ tenant_id: tenant }) => tenant).toSorted()]).toEqual([
      0,
      ['other', 'watched', 'watched', 'watched'],
    ]);
    expect(messages.length).toBeGreaterThan(4);

    const behind = ['watch', '-t', 'watched', '--start-after', first, '--count', '2'];
    expect(plain(await gatehouse(behind)).out).toBe(`+ doc:w#viewer@user:bob  TIME  …TOKEN
- doc:w#viewer@user:ann  TIME  …TOKEN
`);

    await pruneChanges(database.pool, { ageMaxMs: 0, countMax: 0, ageMinMs: 0 });
    const gone = await gatehouse(behind);
    expect([gone.code, gone.out]).toEqual([2, '']);
    expect(gone.err).toMatch(
      / \(WATCH_TOO_OLD\); gatehouse export reads the tuples again, and says the token for --start-after\n$/,
    );
    const still = start(['watch', '-t', 'watched']);
    await expect.poll(still.err).toContain('following');
    still.child.kill('SIGINT');
    expect((await still.ended).code).toBeNull();
  });
});
