import { describe, expect, test } from 'vitest';
import type { Evaluator } from '../../src/engine/evaluator.ts';
import { listObjects } from '../../src/engine/lists/list-objects.ts';
import { evaluatorOf, NOW_MS } from './banned-docs.ts';
import { finish, READS_DEFAULT } from './support.ts';

const many = (count: number, of: (i: number) => string | string[]): string[] =>
  Array.from({ length: count }, (_, i) => of(i)).flat();
const group = (above: string, below: string) => `group:${above}#member@group:${below}#member`;

/* Reads of Check alone stand beside each input: sharing must not cost a list of few objects what it saves long ones. */
describe('a list of one or a few objects takes little more than a check of each', () => {
  test.each<[string, number, string[], string[]]>([
    [
      'a chain beyond the depth bound (527 reads)',
      527,
      ['doc:a#revoked@group:0#member', ...many(20_000, (i) => group(`${i}`, `${i + 1}`))],
      [],
    ],
    [
      'groups that hold the one before and the one after (208 reads)',
      208,
      [
        'doc:a#revoked@group:0#member',
        ...many(200, (i) => group(`${i}`, `${i + 1}`)),
        ...many(200, (i) => group(`${i + 1}`, `${i}`)),
      ],
      ['a'],
    ],
    [
      'cycles of two, one below the other (248 reads)',
      248,
      [
        'doc:a#revoked@group:a0#member',
        ...many(120, (i) => [
          group(`a${i}`, `a${i + 1}`),
          group(`a${i}`, `b${i}`),
          group(`b${i}`, `a${i}`),
        ]),
      ],
      ['a'],
    ],
    [
      'a list of 257 groups (5,408 reads)',
      5_408,
      [
        ...many(257, (i) => `doc:a#revoked@group:${i}#member`),
        ...many(257, (i) => many(20, (j) => group(`${i}`, `${i}_${j}`))),
      ],
      ['a'],
    ],
  ])('%s', (_, reads, tuples, wanted) => {
    const evaluator = evaluatorOf(['doc:a#viewer@user:u', ...tuples]);
    const query = { namespace: 'doc', relation: 'can_view', userId: 'u' };
    const task = evaluator.startListObjects(query, NOW_MS, READS_DEFAULT);
    expect(finish(task)).toEqual(wanted);
    expect(task.reads).toBeLessThan(reads * 1.1 + 20);
  });

  test('a single userset in one operand, and a long list in the next', () => {
    const evaluator = evaluatorOf([
      'doc:a#viewer@user:u',
      'doc:a#revoked@group:1#member',
      ...many(300, (i) => `doc:a#approved@group:${i}#member`),
    ]);
    const query = { namespace: 'doc', relation: 'nested', userId: 'u' };
    expect(finish(evaluator.startListObjects(query, NOW_MS, READS_DEFAULT))).toEqual(['a']);
  });

  test('cycles of 130 groups, one for each of 40 documents (5,441 reads)', () => {
    const evaluator = evaluatorOf(
      many(40, (doc) => [
        `doc:${doc}#viewer@user:u`,
        `doc:${doc}#revoked@group:${doc}_0#member`,
        ...many(130, (i) => group(`${doc}_${i}`, `${doc}_${(i + 1) % 130}`)),
      ]),
    );
    const query = { namespace: 'doc', relation: 'can_view', userId: 'u' };
    const task = evaluator.startListObjects(query, NOW_MS, READS_DEFAULT);
    expect(finish(task)).toHaveLength(40);
  });
});

/** Looks at objects between two yields, at most. */
function longestStep(evaluator: Evaluator, contextJson = ''): number {
  const { general } = evaluator;
  const { reader } = general;
  const namespaceOf = reader.namespaceOf.bind(reader);
  let looks = 0;
  reader.namespaceOf = (entity) => {
    looks++;
    return namespaceOf(entity);
  };
  const scope = general.scope('doc#can_view', contextJson, NOW_MS, READS_DEFAULT);
  const subject = { kind: 'user', userId: 'u' } as const;
  const page = { after: '', idsMax: 1_000 };
  const query = { namespace: 'doc', relation: 'can_view', subject, contextJson, page };
  const steps = listObjects(general, scope, query, () => {});
  let longest = 0;
  do {
    longest = Math.max(longest, looks);
    looks = 0;
  } while (steps.next().done !== true);
  return Math.max(longest, looks);
}

describe('a step is short', () => {
  test('where each of many objects is denied', () => {
    const denied = many(20_000, (i) => [
      `doc:${i}#viewer@user:u`,
      `doc:${i}#revoked@group:x#member`,
    ]);
    expect(longestStep(evaluatorOf(['group:x#member@user:u', ...denied]))).toBeLessThan(5_000);
  });

  test('where each of many objects could not be reached for certain, and is denied', () => {
    const denied = many(20_000, (i) => [
      `doc:${i}#viewer@user:u with consent_granted`,
      `doc:${i}#revoked@group:x#member`,
    ]);
    expect(longestStep(evaluatorOf(['group:x#member@user:u', ...denied]))).toBeLessThan(5_000);
  });
});
