import { prepareTemplate } from '../../src/store/embedded/embedded-postgres-cluster.ts';

/**
 * Makes the cluster that starts of an embedded PostgreSQL copy, where the installation made none (`npm ci` by
 * hand does not). Without it each start in a test takes up to two seconds more.
 */
export default async function setup(): Promise<void> {
  await prepareTemplate();
}
