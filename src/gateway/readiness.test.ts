import { expect, test } from 'vitest';
import { Readiness } from './readiness.ts';

test('is unavailable while starting, ready after, and never again after draining began', () => {
  const readiness = new Readiness();
  expect(readiness.report()).toEqual({
    statusCode: 503,
    body: '{"status":"unavailable","reason":"starting"}',
  });
  readiness.markReady(() => true);
  expect(readiness.report()).toEqual({ statusCode: 200, body: '{"status":"ready","degraded":[]}' });
  readiness.beginDrain();
  readiness.markReady(() => true);
  expect(readiness.notReadyReason).toBe('draining');
});

test('stays ready while only Postgres is away, and says so', () => {
  const readiness = new Readiness();
  readiness.markReady(() => true);
  readiness.setPostgres('degraded');
  expect(readiness.report()).toEqual({
    statusCode: 200,
    body: '{"status":"ready","degraded":["postgres"]}',
  });
  readiness.setPostgres('down');
  expect(readiness.notReadyReason).toBe('postgres');
  readiness.setPostgres('up');
  expect(readiness.isReady).toBe(true);
});

test('says what Postgres refuses, whether it is ready or not', () => {
  const readiness = new Readiness();
  readiness.markReady(() => true);
  readiness.setPostgres('degraded', 'disk_full');
  expect(readiness.report()).toEqual({
    statusCode: 200,
    body: '{"status":"ready","degraded":["postgres"],"postgres":"disk_full"}',
  });
  readiness.setPostgres('down', 'login_refused');
  expect(readiness.report()).toEqual({
    statusCode: 503,
    body: '{"status":"unavailable","reason":"postgres","postgres":"login_refused"}',
  });
  readiness.setPostgres('up', undefined);
  expect(readiness.report().body).toBe('{"status":"ready","degraded":[]}');
});

test('is unavailable while the time is not certain', () => {
  const readiness = new Readiness();
  readiness.markReady(() => true);
  readiness.setTimeCertain(false);
  expect(readiness.notReadyReason).toBe('clock');
  readiness.setTimeCertain(true);
  expect(readiness.isReady).toBe(true);
});

test('is unavailable while a worker restarts', () => {
  const readiness = new Readiness();
  let isUp = false;
  readiness.markReady(() => isUp);
  expect(readiness.notReadyReason).toBe('workers');
  isUp = true;
  expect(readiness.isReady).toBe(true);
});

test('names the loops in the background that fail, but for the time without Postgres', () => {
  const readiness = new Readiness();
  let failing: readonly string[] = [];
  readiness.watchLoops(() => failing);
  readiness.markReady(() => true);
  failing = ['purge', 'bulk'];
  expect(readiness.report()).toEqual({
    statusCode: 200,
    body: '{"status":"ready","degraded":["purge","bulk"]}',
  });
  readiness.setPostgres('degraded');
  expect(readiness.report().body).toBe('{"status":"ready","degraded":["postgres"]}');
});
