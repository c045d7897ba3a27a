import type { Pool } from 'pg';
import type { ConditionProblem } from '../../model/conditions/condition-admission.ts';
import type { TokenCodec } from '../../model/consistency-token.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ShardOpening } from '../projects/management-call.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import type { ReadPositions } from '../reads/read-positions.ts';
import type { ReadSlots } from '../reads/read-slots.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';
import type { WriteRules } from '../writes/write-rules.ts';

/** Counts of the methods that move many tuples. */
export interface BulkMetrics {
  exported(tuples: number): void;
  /** `whole`: into an empty shard, as one change. */
  imported(tuples: number, way: 'whole' | 'chunks'): void;
  deleted(tuples: number): void;
  /** How long a chunk of an import or a delete held its shard. */
  held(seconds: number): void;
  /** A keyed or conditional write ended. */
  guarded(outcome: 'written' | 'replayed' | 'refused'): void;
}

/** Parts that all methods that move many tuples share. */
export type BulkParts = ShardOpening & {
  readonly pool: Pool;
  readonly codec: TokenCodec;
  readonly headRevisions: HeadRevisions;
  readonly positions: ReadPositions;
  readonly writer: TupleWrites;
  /** Rules that the tuples of a project must fit. */
  readonly rules: WriteRules;
  /** Counts tuples that were written although no request can decide their condition. */
  readonly onUndecidable: (field: ConditionProblem['field']) => void;
  /** Slots for work that keeps a connection for long. */
  readonly slots: ReadSlots;
  readonly metrics: BulkMetrics;
};

/**
 * The token of a position; of the present head revision where the position is null or of an epoch
 * that has ended.
 */
export async function tokenAt(
  { codec, positions }: Pick<BulkParts, 'codec' | 'positions'>,
  shard: ShardKey,
  position: { readonly epoch: number; readonly revision: number } | null,
): Promise<string> {
  const { epoch, minRevision } = await positions.resolve(shard, '');
  const isOfEpoch = position !== null && position.epoch >= epoch;
  return isOfEpoch
    ? codec.encode(shard, position.epoch, position.revision)
    : codec.encode(shard, epoch, minRevision);
}
