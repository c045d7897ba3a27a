import { expect, test } from 'vitest';
import { tupleFromText } from '../../src/assertions/tuple-text.ts';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  CHECK_ALLOWED,
  CHECK_DENIED,
  ENGINE_CACHES,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { admittedOnly } from '../../src/model/namespace/model-references.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, TupleKey } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

const MODEL = admittedOnly(
  parseModel(
    parseGate(`
      namespace group {
        relation member: [user, group#member]
        relation staff: [group#member]
      }
      namespace folder {
        relation viewer: [user, group#member]
      }
      namespace doc {
        relation parent: [folder]
        relation owner: [group#member, group#staff]
        relation viewer: [user, group#member] or owner or viewer from parent
        relation banned: [group#member]
        relation reader: viewer but not banned
      }`).json,
  ),
);
const NOW_MS = 1_700_000_000_000;
const READS = 10_000;
const OTHERS = Array.from({ length: 10 }, (_, i) => `doc:1#owner@user:u${i}`);

type Case = {
  readonly name: string;
  /** Stored tuples, of which those of `ignored` are not admitted. */
  readonly admitted?: readonly string[];
  readonly ignored: readonly (string | RelationTuple)[];
  /** Denied while all of them are stored. */
  readonly denied: string;
  /** Allows it. */
  readonly allows: string;
};

const ALICE = 'doc:1#viewer@user:a';
const MEMBER = 'doc:1#owner@group:g#member';

const CASES: readonly Case[] = [
  { name: 'one user', ignored: ['doc:1#owner@user:a'], denied: ALICE, allows: ALICE },
  {
    name: 'a few users',
    ignored: [...OTHERS.slice(0, 2), 'doc:1#owner@user:a'],
    denied: ALICE,
    allows: ALICE,
  },
  {
    name: 'many users',
    ignored: [...OTHERS, 'doc:1#owner@user:a'],
    denied: ALICE,
    allows: ALICE,
  },
  { name: 'everybody', ignored: ['doc:1#owner@user:*'], denied: ALICE, allows: ALICE },
  {
    name: 'everybody among users',
    ignored: [...OTHERS, 'doc:1#owner@user:*'],
    denied: ALICE,
    allows: ALICE,
  },
  {
    name: 'a user by a condition that is not named',
    ignored: [{ ...keyOf(ALICE), conditionName: 'age_at_least', conditionParams: '{"min_age":1}' }],
    denied: ALICE,
    allows: 'doc:1#owner@group:g#member',
    admitted: ['group:g#member@user:b'],
  },
  {
    name: 'a userset',
    admitted: ['folder:f#viewer@user:a'],
    ignored: ['doc:1#owner@folder:f#viewer'],
    denied: ALICE,
    allows: 'doc:1#parent@folder:f',
  },
  {
    name: 'a userset among others',
    admitted: ['folder:f#viewer@user:a', MEMBER, 'doc:1#owner@group:h#member'],
    ignored: ['doc:1#owner@folder:f#viewer'],
    denied: ALICE,
    allows: 'group:g#member@user:a',
  },
  {
    name: 'a member of a group',
    admitted: ['doc:1#owner@group:g#staff'],
    ignored: ['group:g#staff@user:a'],
    denied: ALICE,
    allows: ALICE,
  },
  {
    name: 'a group in a group',
    admitted: [MEMBER, 'group:h#staff@group:k#member', 'group:k#member@user:a'],
    ignored: ['group:g#member@group:h#staff'],
    denied: ALICE,
    allows: 'group:g#member@group:k#member',
  },
  {
    name: 'a parent',
    admitted: ['doc:2#viewer@user:a'],
    ignored: ['doc:1#parent@doc:2'],
    denied: ALICE,
    allows: ALICE,
  },
  {
    name: 'a parent among others',
    admitted: ['doc:2#viewer@user:a', 'doc:1#parent@folder:f', 'doc:1#parent@folder:g'],
    ignored: ['doc:1#parent@doc:2'],
    denied: ALICE,
    allows: 'folder:g#viewer@user:a',
  },
  {
    name: 'the grant below an exclusion',
    ignored: ['doc:1#owner@user:a'],
    denied: 'doc:1#reader@user:a',
    allows: ALICE,
  },
  {
    name: 'an exact userset',
    ignored: ['doc:1#owner@folder:f#viewer'],
    denied: 'doc:1#viewer@folder:f#viewer',
    allows: 'doc:1#parent@folder:f',
  },
  {
    name: 'an exact userset among others',
    admitted: [MEMBER, 'doc:1#owner@group:h#member'],
    ignored: ['doc:1#owner@folder:f#viewer'],
    denied: 'doc:1#viewer@folder:f#viewer',
    allows: 'doc:1#parent@folder:f',
  },
  {
    name: 'an object itself',
    admitted: ['group:o#member@user:b'],
    ignored: ['doc:1#owner@folder:f', 'doc:1#owner@folder:*'],
    denied: 'doc:1#viewer@folder:f',
    allows: '',
  },
];

function keyOf(text: string): TupleKey {
  const tuple = tupleFromText(text);
  if ('problem' in tuple) throw new Error(`${text}: ${tuple.problem}`);
  return tuple;
}

/** What the hot path alone answers. */
function hotCode(evaluator: Evaluator, index: TupleIndex, text: string): number {
  const query = { ...keyOf(text), contextJson: '', isExact: true };
  const { subject } = query;
  if (subject.kind !== 'user') return evaluator.checkExact(query, NOW_MS, READS);
  const entity = index.entityId(index.nameId(query.namespace), query.objectId);
  const user = index.entityId(EMPTY_NAME, subject.userId);
  return evaluator.checkUser(entity, index.nameId(query.relation), user, NOW_MS, READS);
}

test.for(
  CASES.flatMap((each) => [
    { ...each, cachesOff: [] },
    { ...each, cachesOff: ENGINE_CACHES },
  ]),
)(
  'the hot path ignores $name, which the model does not admit (caches off: $cachesOff)',
  ({ admitted = [], ignored, denied, allows, cachesOff }) => {
    const index = new TupleIndex();
    for (const tuple of [...admitted, ...ignored, 'doc:2#viewer@user:a', 'doc:1#viewer@user:z']) {
      index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
    }
    const options = { depthMax: 256, membershipBytesMax: 1 << 16, cachesOff };
    const evaluator = new Evaluator(index, MODEL, options, systemClock);
    // Once with nothing remembered, and twice with what that left.
    for (let i = 0; i < 3; i++) expect(hotCode(evaluator, index, denied)).toBe(CHECK_DENIED);
    if (allows === '') return;
    index.applyChange('insert', keyOf(allows));
    if (allows === MEMBER) index.applyChange('insert', keyOf('group:g#member@user:a'));
    expect(hotCode(evaluator, index, denied)).toBe(CHECK_ALLOWED);
    index.applyChange('delete', keyOf(allows));
    expect(hotCode(evaluator, index, denied)).toBe(CHECK_DENIED);
  },
);

test('a ban that the model does not admit bans nobody', () => {
  const index = new TupleIndex();
  for (const tuple of ['doc:1#viewer@user:a', 'doc:1#banned@user:a']) {
    index.applyChange('insert', keyOf(tuple));
  }
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  expect(hotCode(evaluator, index, 'doc:1#reader@user:a')).toBe(CHECK_ALLOWED);
});
