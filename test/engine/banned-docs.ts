import { TupleIndex } from '../../src/cache/tuple-index.ts';
import type { Value } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { type ListEnd, listObjects } from '../../src/engine/lists/list-objects.ts';
import { StepsTask } from '../../src/engine/lists/steps-task.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';
import { finish } from './support.ts';

/* Documents in folders under bans, and lists of them: for the tests of lists over exclusions and intersections. */
export const READS = 1_000_000;
export const NOW_MS = Date.UTC(2026, 10, 1);

export const upwards = (computed: string) => ({
  tuple_to_userset: { tupleset: 'parent', computed },
});
export const here = (relation: string) => ({ computed: relation });
export const union = (...operands: object[]) => ({ union: operands });
export const butNot = (include: object, exclude: object) => ({ exclusion: { include, exclude } });
const MODEL = {
  namespaces: {
    group: { relations: { member: {}, trusted: butNot({}, here('banned')), banned: {} } },
    folder: {
      relations: {
        parent: {},
        revoked: union({}, upwards('revoked')),
        viewer: union({}, upwards('viewer')),
        open: butNot(union({}, upwards('open')), here('revoked')),
      },
    },
    doc: {
      relations: {
        parent: {},
        revoked: union({}, upwards('revoked')),
        approved: {},
        viewer: union({}, upwards('viewer')),
        can_view: butNot(here('viewer'), here('revoked')),
        can_sign: { intersection: [here('viewer'), here('approved')] },
        inherited: union(upwards('open'), here('can_sign')),
        direct: butNot(union({}, upwards('viewer')), union(here('revoked'), here('approved'))),
        nested: butNot(here('can_view'), { intersection: [here('approved'), upwards('open')] }),
      },
    },
  },
};
export const ASKED = ['can_view', 'can_sign', 'inherited', 'direct', 'nested'] as const;

export function evaluatorOf(
  tuples: Iterable<string>,
  depthMax = 256,
  model: object = MODEL,
): Evaluator {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    const [key = '', condition] = tuple.split(' with ');
    const params =
      condition === undefined ? {} : { conditionName: condition, conditionParams: '{}' };
    index.applyChange('insert', { ...keyOf(key), ...params });
  }
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  return new Evaluator(index, parseModel(JSON.stringify(model)), options, systemClock);
}

export function listed(
  evaluator: Evaluator,
  relation: string,
  { userId = 'u', idsMax = Infinity, after = '', reads = READS, contextJson = '' } = {},
): { readonly ids: string[] } & ListEnd & { readonly reads: number } {
  const { general } = evaluator;
  const scope = general.scope(`doc#${relation}`, contextJson, NOW_MS, reads);
  const subject = { kind: 'user', userId } as const;
  const query = { namespace: 'doc', relation, subject, contextJson, page: { after, idsMax } };
  const ids: string[] = [];
  const task = new StepsTask(
    scope,
    listObjects(general, scope, query, (id) => ids.push(id)),
  );
  return { ...finish<ListEnd>(task), ids, reads: scope.reads };
}

export function decided(
  evaluator: Evaluator,
  objectId: string,
  relation: string,
  contextJson = '',
): Value {
  const subject = { kind: 'user', userId: 'u' } as const;
  const query = { namespace: 'doc', objectId, relation, subject, contextJson };
  return finish(evaluator.general.startDecision(query, NOW_MS, READS));
}

export const sorted = (ids: Iterable<string>): string[] => [...ids].toSorted();
