import { afterAll, expect } from 'vitest';
import { createTestDatabase, type TestDatabase } from './postgres.ts';
import { type Instance, startInstance } from './start-instance.ts';

export { type Instance, startInstance } from './start-instance.ts';

/**
 * An instance on a database of its own for all tests of the calling file, gone after the last one; that none of
 * its calls ended with an internal failure is expected then. Call it once, while the file is loaded.
 */
export async function instanceForFile(
  env: Readonly<Record<string, string>> = {},
  isAlone?: () => boolean,
): Promise<{ readonly database: TestDatabase; readonly instance: Instance }> {
  const database = await createTestDatabase();
  const starting = startInstance(database, env, undefined, undefined, isAlone);
  const instance = await starting.catch(async (error: unknown) => {
    await database.drop();
    throw error;
  });
  afterAll(async () => {
    await instance.stop();
    await database.drop();
    expect(instance.failures).toEqual([]);
  });
  return { database, instance };
}
