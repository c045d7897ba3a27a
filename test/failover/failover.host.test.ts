import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { until } from '../faults/support.ts';
import {
  dumpRows,
  restoreRows,
  startCluster,
  startCopy,
  type TestCluster,
} from '../support/postgres-cluster.ts';
import type { Service } from '../support/service.ts';
import { createTcpSwitch, type TcpSwitch } from '../support/tcp-switch.ts';
import { byLength, inLong } from '../support/test-length.ts';
import {
  check,
  decided,
  failures,
  openedEpochs,
  refusal,
  secondsToServe,
  startInstances,
  Watcher,
  written,
} from './support.ts';

/* Several processes behind one address, whose database turns out to be of another history. */

type Fault = {
  /** Makes the state that will be gone back to; `lose` is called after it, and makes the rest. */
  readonly prepare: (primary: TestCluster) => Promise<void>;
  /** Calls `cut` when the old server goes; resolves with the one that takes its place. */
  readonly replace: (cut: () => void) => Promise<TestCluster>;
};

const clusters: TestCluster[] = [];
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
  for (const cluster of clusters.splice(0)) await cluster.remove();
}, 120_000);

async function track(cluster: Promise<TestCluster>): Promise<TestCluster> {
  clusters.push(await cluster);
  return await cluster;
}

async function loseHistory(
  name: string,
  count: number,
  fault: (primary: TestCluster) => Fault,
  replaced: (services: readonly [Service, ...Service[]], address: TcpSwitch) => Promise<void>,
): Promise<void> {
  const primary = await track(startCluster());
  const { prepare, replace } = fault(primary);
  const address = await createTcpSwitch(primary.target);
  ends.push(() => address.end());
  const services = await startInstances(address.target, count);
  ends.push(() => Promise.all(services.map((service) => service.stop())));
  const [first] = services;

  await written(first, 'kept');
  await written(first, 'kept-till-later');
  await prepare(primary);
  const lost: string[] = [];
  for (const service of services) {
    lost.push(await written(service, `lost-${lost.length}`));
  }
  for (const service of services) {
    for (let i = 0; i < lost.length; i++) {
      expect(await decided(service, `lost-${i}`, lost[i])).toBe(true);
    }
  }

  const watcher = new Watcher(services, () => lost);
  watcher.expect('kept', true);
  watcher.expect('kept-till-later', true);
  watcher.expect('never', false);
  let goneMs = performance.now();
  const next = await track(
    replace(() => {
      goneMs = performance.now();
      address.close();
    }),
  );
  const backMs = performance.now();
  address.point(next.target);
  const served = await secondsToServe(services, backMs, 'kept');
  const goneSeconds = (backMs - goneMs) / 1_000;
  process.stdout.write(
    `${name}: database away ${goneSeconds.toFixed(2)} s, then reads after ${served.reads} s, writes after ${served.writes} s\n`,
  );
  // A write was acknowledged in the new history: whoever asks from now on sees it, and nothing of the old one.
  for (let i = 0; i < lost.length; i++) watcher.expect(`lost-${i}`, false);
  for (const [n, service] of services.entries()) {
    for (let i = 0; i < lost.length; i++) expect(await decided(service, `lost-${i}`)).toBe(false);
    watcher.expectNothing('kept-till-later');
    await written(service, 'kept-till-later', 'OP_DELETE');
    watcher.expect('kept-till-later', false);
    for (const other of services) expect(await decided(other, 'kept-till-later')).toBe(false);
    watcher.expectNothing('kept-till-later');
    const token = await written(service, 'kept-till-later');
    watcher.expect('kept-till-later', true);
    for (const other of services) {
      expect(await decided(other, 'kept-till-later')).toBe(true);
      expect(await decided(other, 'kept-till-later', token)).toBe(true);
    }
    // Tokens of the lost writes name numbers that are others' by now.
    for (const old of lost)
      expect(await refusal(service, 'kept', old)).toBe('400 invalid_argument');
    expect(await decided(service, `probe-${n}`)).toBe(true);
  }
  await replaced(services, address);
  await watcher.stop();
  expect(watcher.wrong).toEqual([]);
  expect(watcher.answers).toBeGreaterThan(byLength(30, 100));
  // None has said so where the answer to the one that opened it was lost.
  expect(openedEpochs(services)).toBeLessThanOrEqual(1);
  expect(failures(services)).toEqual([]);
}

/** A server that crashed and came back is of the same history: tokens stay valid. */
async function survivesCrash(primary: TestCluster, services: readonly Service[]): Promise<void> {
  const [first] = services as [Service];
  const token = await written(first, 'kept');
  const goneMs = performance.now();
  await primary.kill();
  await primary.start();
  const awaySeconds = ((performance.now() - goneMs) / 1_000).toFixed(2);
  const served = await secondsToServe(services, performance.now(), 'kept');
  process.stdout.write(
    `crash: database away ${awaySeconds} s, then reads after ${served.reads} s, writes after ${served.writes} s\n`,
  );
  for (const service of services) expect(await decided(service, 'kept', token)).toBe(true);
  expect(openedEpochs(services)).toBe(0);
  expect(failures(services)).toEqual([]);
}

test.each(byLength([1], [3]))(
  '%i instances over a promoted replica that lost the last writes: one new epoch, and nothing of them is answered again',
  async (count) => {
    let replica: Awaited<ReturnType<TestCluster['createReplica']>> | undefined;
    await loseHistory(
      `failover to a replica, instances: ${count}`,
      count,
      (primary) => ({
        prepare: async () => {
          replica = await primary.createReplica();
          await replica.caughtUp();
          await replica.disconnect();
        },
        replace: async (cut) => {
          cut();
          await primary.kill();
          await replica?.promote();
          return replica as TestCluster;
        },
      }),
      async (services, address) => {
        // The old primary comes back, and an address that is not fenced leads to it for a while.
        const [old, current] = clusters;
        if (old === undefined || current === undefined) throw new Error('two clusters');
        await old.start();
        address.point(old.target);
        for (let i = 0; i < 50; i++) {
          for (const service of services) expect(await check(service, 'lost-0')).not.toBe(true);
        }
        address.point(current.target);
        for (const service of services) {
          await until(async () => (await check(service, 'kept')) === true);
        }
      },
    );
  },
  120_000,
);

inLong(test)(
  'a dump that was restored into another server: one new epoch, old tokens are refused',
  async () => {
    let dumped: Awaited<ReturnType<typeof dumpRows>> | undefined;
    await loseHistory(
      'restored dump',
      3,
      (primary) => ({
        prepare: async () => {
          dumped = await dumpRows(primary.target);
        },
        replace: async (cut) => {
          cut();
          await primary.kill();
          const other = await startCluster();
          const { migrate } = await import('../../src/store/migrations/migrate.ts');
          await migrate(other.target);
          if (dumped !== undefined) await restoreRows(other.target, dumped);
          return other;
        },
      }),
      () => Promise.resolve(),
    );
  },
  240_000,
);

inLong(test).each([
  // By the commits themselves, and by where the server's log ended.
  ['at once', 0],
  ['seconds later', 3_000],
])(
  'an older copy of the files in the place of the server, %s: one new epoch',
  async (when, pauseMs) => {
    let copy: Awaited<ReturnType<TestCluster['backup']>> | undefined;
    await loseHistory(
      `older copy of the files ${when}`,
      3,
      (primary) => ({
        prepare: async () => {
          copy = await primary.backup();
        },
        replace: async (cut) => {
          await sleep(pauseMs);
          cut();
          await primary.kill();
          if (copy === undefined) throw new Error('no copy');
          return await startCopy(copy);
        },
      }),
      () => Promise.resolve(),
    );
  },
  120_000,
);

inLong(test)(
  'a server that crashed and came back is of the same history: tokens stay valid',
  async () => {
    const primary = await track(startCluster());
    const address = await createTcpSwitch(primary.target);
    ends.push(() => address.end());
    const services = await startInstances(address.target, 2);
    ends.push(() => Promise.all(services.map((service) => service.stop())));
    await survivesCrash(primary, services);
  },
  240_000,
);
