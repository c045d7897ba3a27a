import { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { SharedWork, type WorkName, type WorkOutcome } from './shared-work.ts';

// oxlint-disable-next-line typescript/unbound-method -- applied to the client that a call is of
const original = Client.prototype.query;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Work of another instance, with a session of its own. */
function instance(): { shared: SharedWork; runs: string[] } {
  const runs: string[] = [];
  const onRun = (name: WorkName, outcome: WorkOutcome): void =>
    void runs.push(`${name} ${outcome}`);
  return { shared: new SharedWork({ target: database.target, onRun }), runs };
}

async function sessions(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
     where application_name = 'gatehouse-upkeep' and datname = current_database()`,
  );
  return rows[0]?.count ?? 0;
}

test('one instance works at a time, and any may take over', async () => {
  const [first, second] = [instance(), instance()];
  const end = Promise.withResolvers<string>();
  const running = first.shared.run('purge', () => end.promise);
  await vi.waitFor(async () => expect(await sessions()).toBe(1), { timeout: 20_000 });
  let isDone = false;
  const other = async (): Promise<void> => {
    isDone = true;
    await Promise.resolve();
  };
  // The lock is taken once the session is there; until then the second one might be first.
  await vi.waitFor(
    async () => {
      const { rowCount } = await database.pool.query(
        `select 1 from pg_locks where locktype = 'advisory' and classid = 1734440055`,
      );
      expect(rowCount).toBe(1);
    },
    { timeout: 20_000 },
  );
  expect(await second.shared.run('purge', other)).toBeUndefined();
  expect(await first.shared.run('purge', other)).toBeUndefined();
  expect(isDone).toBe(false);
  // Other work has a lock of its own.
  expect(await second.shared.run('retention', () => Promise.resolve('kept'))).toBe('kept');
  expect(await first.shared.run('retention', () => Promise.resolve('kept'))).toBe('kept');
  end.resolve('purged');
  expect(await running).toBe('purged');
  await second.shared.run('purge', other);
  expect(isDone).toBe(true);
  expect(first.runs).toEqual(['purge elsewhere', 'retention done', 'purge done']);
  expect(second.runs).toEqual(['purge elsewhere', 'retention done', 'purge done']);
  await vi.waitFor(async () => expect(await sessions()).toBe(0), { timeout: 20_000 });
});

test('what fails lets go of the lock', async () => {
  const [first, second] = [instance(), instance()];
  const failing = first.shared.run('purge', () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(first.runs).toEqual(['purge failed']);
  expect(await second.shared.run('purge', () => Promise.resolve(1))).toBe(1);
});

test('who loses its session is told to end, another takes over, and it tries again later', async () => {
  const [first, second] = [instance(), instance()];
  const begun = Promise.withResolvers<AbortSignal>();
  const running = first.shared.run('fsck', async (lost) => {
    begun.resolve(lost);
    await new Promise((resolve) => lost.addEventListener('abort', resolve));
    return 'ended';
  });
  const lost = await begun.promise;
  expect(lost.aborted).toBe(false);
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'gatehouse-upkeep' and datname = current_database()`,
  );
  expect(await running).toBe('ended');
  expect(await second.shared.run('fsck', () => Promise.resolve(1))).toBe(1);
  expect(await first.shared.run('fsck', () => Promise.resolve(2))).toBe(2);
});

test('without a server a run fails and the next one tries again', async () => {
  const nowhere = { host: '/nonexistent', port: 1, user: 'u', password: 'p', database: 'd' };
  const shared = new SharedWork({ target: nowhere });
  let count = 0;
  const work = (): Promise<number> => Promise.resolve((count += 1));
  await expect(shared.run('purge', work)).rejects.toThrow('connect');
  await expect(shared.run('purge', work)).rejects.toThrow('connect');
  expect(count).toBe(0);
});

test('works that begin and end together send one statement after the other', async () => {
  const { shared } = instance();
  const query = vi.spyOn(Client.prototype, 'query');
  const underWay = new Map<unknown, number>();
  let most = 0;
  query.mockImplementation(function (this: Client, ...args: unknown[]) {
    const count = (underWay.get(this) ?? 0) + 1;
    underWay.set(this, count);
    most = Math.max(most, count);
    const answer = original.apply(this, args as never) as unknown as Promise<unknown>;
    return answer.finally(() => underWay.set(this, (underWay.get(this) ?? 1) - 1)) as never;
  });
  try {
    const names = ['purge', 'retention', 'bulk', 'activation', 'fsck'] as const;
    const done = await Promise.all(
      names.map((name) => shared.run(name, () => Promise.resolve(name))),
    );
    expect(done).toEqual(names);
    expect(most).toBe(1);
  } finally {
    query.mockRestore();
  }
});
