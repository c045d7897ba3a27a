import { Evaluator } from '../../src/engine/evaluator.ts';
import type { ExplainGround } from '../../src/engine/explain/explain-ground.ts';
import { ExplainRun } from '../../src/engine/explain/explain-run.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import type { Explanation } from '../../src/model/explanation.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { CheckQuery, RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { NOW_MS, type World } from '../reference/worlds.ts';
import { createIndex, createSimpleIndex, finish, READS_DEFAULT } from './support.ts';

/** How an explanation is bounded. */
export type ExplainBounds = {
  readonly depthMax?: number;
  readonly reads?: number;
  readonly remediesMax?: number;
  readonly contextual?: readonly RelationTuple[];
};

/** A world to explain questions over. */
export type ExplainedWorld = {
  readonly ground: ExplainGround;
  readonly evaluator: Evaluator;
  /** Errors: those of Check. */
  explain(query: CheckQuery): Explanation;
  /** Check, as if the tuple were stored. */
  checkWith(tuple: RelationTuple, query: CheckQuery): boolean;
};

/** Half of the worlds on the index that ships, half on plain maps. */
export function explainedWorld(world: World, bounds: ExplainBounds = {}): ExplainedWorld {
  const { depthMax = 256, reads = READS_DEFAULT, remediesMax = 100, contextual = [] } = bounds;
  const index = world.tuples.length % 2 === 0 ? createIndex() : createSimpleIndex();
  for (const tuple of world.tuples) index.insert(tuple);
  const model = parseModel(world.modelJson);
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  const evaluator = new Evaluator(index.reader, model, options, systemClock);
  const held = contextual.map((tuple) => ({ op: 'insert' as const, tuple }));
  const ground: ExplainGround = {
    evaluator: evaluator.over(
      held.length === 0 ? index.reader : new OverlayReader(index.reader, held),
    ),
    withTuple: (tuple) =>
      evaluator.over(new OverlayReader(index.reader, [{ op: 'insert', tuple }, ...held])),
    model,
    contextual,
    nowMs: NOW_MS,
    readBudget: reads,
  };
  return {
    ground,
    evaluator,
    explain: (query) => finish(new ExplainRun(ground, query, remediesMax, systemClock)),
    checkWith: (tuple, query) => finish(ground.withTuple(tuple).startCheck(query, NOW_MS, reads)),
  };
}
