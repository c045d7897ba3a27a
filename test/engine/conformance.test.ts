import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { SimpleTupleReader } from '../support/simple-tuple-reader.ts';
import { checkBoth, finish } from './support.ts';

type WireSubject = {
  readonly user_id?: string;
  readonly wildcard?: boolean;
  readonly set?: WireSet;
};
type WireSet = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation?: string;
};
type Case = {
  readonly name: string;
  readonly model_json: unknown;
  readonly tuples: readonly {
    readonly namespace: string;
    readonly object_id: string;
    readonly relation: string;
    readonly subject: WireSubject;
    readonly expires_at?: string;
  }[];
  readonly checks: readonly {
    readonly namespace: string;
    readonly object_id: string;
    readonly relation: string;
    readonly subject_user_id?: string;
    readonly subject_set?: WireSet;
    readonly want: boolean;
  }[];
  readonly lists: readonly {
    readonly namespace: string;
    readonly relation: string;
    readonly subject_user_id: string;
    readonly want: readonly string[];
  }[];
};

const file = new URL('../conformance/spicedb.json', import.meta.url);
const cases = JSON.parse(readFileSync(file, 'utf8')) as readonly Case[];

function subjectOf(wire: WireSubject): Subject {
  if (wire.user_id !== undefined) return { kind: 'user', userId: wire.user_id };
  if (wire.set !== undefined) return setOf(wire.set);
  return { kind: 'wildcard' };
}

function setOf(set: WireSet): Subject {
  const { namespace, object_id: objectId, relation } = set;
  return { kind: 'set', namespace, objectId, relation: relation ?? '' };
}

describe('cases of authzed/spicedb', () => {
  test.each(cases.map((one) => [one.name, one] as const))('%s', (_name, one) => {
    const reader = new SimpleTupleReader();
    for (const tuple of one.tuples) {
      reader.insert({
        namespace: tuple.namespace,
        objectId: tuple.object_id,
        relation: tuple.relation,
        subject: subjectOf(tuple.subject),
        expiresAtUs:
          tuple.expires_at === undefined ? undefined : BigInt(Date.parse(tuple.expires_at)) * 1000n,
      });
    }
    const model = parseModel(JSON.stringify(one.model_json));
    const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
    const evaluator = new Evaluator(reader, model, options, systemClock);
    const now = Date.now();
    for (const check of one.checks) {
      const subject: Subject =
        check.subject_set === undefined
          ? { kind: 'user', userId: check.subject_user_id ?? '' }
          : setOf(check.subject_set);
      const input = {
        namespace: check.namespace,
        objectId: check.object_id,
        relation: check.relation,
        subject,
        contextJson: '',
      };
      expect(checkBoth(evaluator, reader, input, now), JSON.stringify(check)).toBe(check.want);
    }
    for (const list of one.lists) {
      const query = { ...list, userId: list.subject_user_id };
      const answer = finish(evaluator.startListObjects(query, now, 10_000));
      expect(answer, JSON.stringify(list)).toEqual(list.want);
    }
  });
});
