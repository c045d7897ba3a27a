import { DatabaseError } from 'pg';
import { expect, test } from 'vitest';
import { classifyPgError, refusalIn, storeError } from './pg-errors.ts';
import { REFUSED_FOR_MS, StoreRefusals } from './store-refusals.ts';

function errorOf(code: string, severity: string): DatabaseError {
  return Object.assign(new DatabaseError('refused', 0, 'error'), { code, severity });
}

test.each([
  ['53100', 'ERROR', 'refused', 'disk_full', 'STORE_FULL'],
  ['25006', 'ERROR', 'refused', 'read_only', 'STORE_READ_ONLY'],
  ['42501', 'ERROR', 'refused', 'rights_missing', 'STORE_RIGHTS_MISSING'],
  // In another language, and at a connect.
  ['25006', 'FEHLER', 'refused', 'read_only', 'STORE_READ_ONLY'],
  ['42501', 'ERREUR', 'refused', 'rights_missing', 'STORE_RIGHTS_MISSING'],
  ['42501', 'FATAL', 'refused', 'rights_missing', 'STORE_RIGHTS_MISSING'],
  ['28000', 'FATAL', 'refused', 'login_refused', 'STORE_LOGIN_REFUSED'],
  ['28P01', 'FATAL', 'refused', 'login_refused', 'STORE_LOGIN_REFUSED'],
  // The server ends itself: whether a commit is done is not known.
  ['53100', 'PANIC', 'unavailable', undefined, 'STORE_UNAVAILABLE'],
  ['53100', 'FATAL', 'unavailable', undefined, 'STORE_UNAVAILABLE'],
  ['53100', 'FEHLER', 'unavailable', undefined, 'STORE_UNAVAILABLE'],
  ['53300', 'FATAL', 'unavailable', undefined, 'STORE_UNAVAILABLE'],
] as const)('%s %s is %s', (code, severity, failure, refusal, reason) => {
  const error = errorOf(code, severity);
  expect([classifyPgError(error), refusalIn(error)]).toEqual([failure, refusal]);
  expect(storeError(error)).toMatchObject({ reason, cause: error });
});

test('a refusal lasts for a while after it was met last, however deep it lies', () => {
  let nowMs = 50_000;
  const begun: string[] = [];
  const refusals = new StoreRefusals(
    () => nowMs,
    (refusal) => begun.push(refusal),
  );
  refusals.note(new Error('another'));
  refusals.note('no error');
  expect([refusals.current, begun]).toEqual([undefined, []]);
  const full = errorOf('53100', 'ERROR');
  refusals.note(new Error('not applied', { cause: storeError(full) }));
  nowMs += REFUSED_FOR_MS - 1;
  refusals.note(full);
  nowMs += REFUSED_FOR_MS - 1;
  expect([refusals.current, begun, refusals.counts.get('disk_full')]).toEqual([
    'disk_full',
    ['disk_full'],
    2,
  ]);
  nowMs += 1;
  expect(refusals.current).toBeUndefined();
  refusals.note(errorOf('25006', 'ERROR'));
  expect([refusals.current, begun]).toEqual(['read_only', ['disk_full', 'read_only']]);
});
