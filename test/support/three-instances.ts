import { afterAll, beforeAll, expect } from 'vitest';
import { type Instance, startInstance } from './instance.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

/** What tests of one file share. */
export type ThreeInstances = {
  readonly database: TestDatabase;
  readonly instances: readonly [Instance, Instance, Instance];
};

/**
 * Three instances on a database of their own, from before the first test of this file until after its last one.
 * What it returns is filled by then. No instance may have logged a failure.
 */
export function threeInstances(): ThreeInstances {
  let shared: ThreeInstances | undefined;
  const started = (): ThreeInstances => {
    if (shared === undefined) throw new Error('the instances are there inside tests');
    return shared;
  };
  beforeAll(async () => {
    const database = await createTestDatabase();
    const start = (): Promise<Instance> => startInstance(database);
    shared = { database, instances: await Promise.all([start(), start(), start()]) };
  }, 120_000);
  afterAll(async () => {
    const { database, instances } = started();
    for (const instance of instances) {
      await instance.stop();
      expect(instance.failures).toEqual([]);
    }
    await database.drop();
  });
  return {
    get database() {
      return started().database;
    },
    get instances() {
      return started().instances;
    },
  };
}
