import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import type { LogLine } from '../support/child-service.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { serveService } from '../support/serve-service.ts';
import { type Service, startService } from '../support/service.ts';
import { startInstance } from '../support/start-instance.ts';
import { byLength } from '../support/test-length.ts';

/** One of several instances on a database: a process, or a part of the test's own. */
export type Member = Pick<
  Service,
  'baseUrl' | 'metricsUrl' | 'token' | 'adminSecret' | 'log' | 'stop'
>;

type Database = { readonly target: PostgresTarget };
type Env = Readonly<Record<string, string>>;

/** A process of its own on the database, which signals can stop and kill. */
export async function startProcess(database: Database, env: Env): Promise<Service> {
  const DATABASE_URL = urlOf(database.target);
  return await startService({ env: { ...env, DATABASE_URL } });
}

/**
 * As `startProcess`, of an instance whose notifications are the subject, too: in the short run a whole service
 * that shares the process of the test.
 */
export async function startWhole(database: Database, env: Env): Promise<Member> {
  if (byLength(false, true)) return await startProcess(database, env);
  return await serveService({ ...env, DATABASE_URL: urlOf(database.target) });
}

/**
 * An instance that nothing is done to but to ask and to stop it. In the short run it shares the process of the
 * test, which costs a fraction of the start of one, and hears no notifications; in the long run it is a process like those
 * of operators.
 */
export async function startMember(database: Database, env: Env): Promise<Member> {
  if (byLength(false, true)) return await startProcess(database, env);
  const instance = await startInstance(database, env);
  return {
    baseUrl: instance.baseUrl,
    metricsUrl: instance.metricsUrl,
    token: instance.token,
    adminSecret: instance.adminSecret,
    get log(): LogLine[] {
      const failures = instance.failures.map((error) => ({ msg: 'call_failed', error }));
      const lines = instance.logged.map(({ level, event, fields }) => ({
        ...fields,
        level,
        msg: event,
      }));
      return [...lines, ...failures];
    },
    stop: async () => {
      await instance.stop();
      return 0;
    },
  };
}
