/**
 * Reason for which a call is rejected or cannot be answered. Where the service has the same error, the reason is the
 * same.
 */
export type ErrorReason =
  /** The model is not valid; `problems` gives the places. */
  | 'MODEL_INVALID'
  /** The file of tests is not valid; `problems` gives the place. */
  | 'ASSERTIONS_INVALID'
  /** An argument is missing; `field` names it. */
  | 'FIELD_REQUIRED'
  /** An argument is wrong; `field` names it. */
  | 'FIELD_INVALID'
  /** The model does not admit a tuple; `field` names the part. */
  | 'TUPLE_NOT_ADMITTED'
  /** The typed model has no such namespace or relation. */
  | 'RELATION_UNKNOWN'
  /** The evaluation needs more reads than `readsMax`. */
  | 'BUDGET_EXHAUSTED'
  /** A list does not fit into 64 MiB: request it in parts. */
  | 'RESULT_TOO_LARGE'
  /** The tuples do not fit into `indexBytesMax`. */
  | 'SHARD_TOO_LARGE'
  /** An earlier write failed in the middle: create a new engine. */
  | 'ENGINE_DAMAGED';

/** Error or warning about a text. */
export type SourceProblem = {
  readonly message: string;
  /** JSON path into the model's document. */
  readonly path?: string | undefined;
  /** Line of the text, from 1; absent for JSON. */
  readonly line?: number | undefined;
  /** Character of the line, from 1. */
  readonly column?: number | undefined;
};

/** The only error that the engine throws on purpose. None of them is an allow. */
export class EngineError extends Error {
  /** The reason, for programs. */
  readonly reason: ErrorReason;
  /** The argument that is wrong, as a path: `tuples[2].objectId`. */
  readonly field: string | undefined;
  /** Errors of a text, in the order in which they are found. */
  readonly problems: readonly SourceProblem[];

  /** Made by the engine. */
  constructor(
    reason: ErrorReason,
    message: string,
    details: {
      readonly field?: string | undefined;
      readonly problems?: readonly SourceProblem[] | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'EngineError';
    this.reason = reason;
    this.field = details.field;
    this.problems = details.problems ?? [];
  }
}
