import type { DecodeLimits, ItemsLimit } from '../decoding/decode-limits.ts';
import { FILES_MAX } from '../gateway/models/assertion-tests.ts';
import { GIVEN_MAX } from '../gateway/models/preview-queries.ts';
import { WHAT_IF_UPDATES_MAX } from '../gateway/queries/what-if-handlers.ts';
import { fieldError } from '../model/reasons.ts';
import { listLimits, tooManyInRequest } from '../requests/request-lists.ts';
import { PRECONDITIONS_MAX } from '../services/bulk/guarded-write.ts';
import type { AppError } from '../shared/app-error.ts';

/** Bytes of the text of a model, in either form: it is read in one go, some 40 ms when the code is cold. */
const MODEL_TEXT_BYTES_MAX = 65_536;
/** Bytes of a file of assertions. */
const ASSERTIONS_TEXT_BYTES_MAX = 1_048_576;

const QUERIES = 'gatehouse.v1';
const CONTRACT = 'workspace.v1';

/**
 * Limits of requests that decoding checks before the handlers do: each list that has a limit, with
 * its error. All others have the bounds of `decode-limits.ts`.
 */
export function requestLimits(config: {
  readonly maxBatchItems: number;
  readonly maxWriteUpdates: number;
}): DecodeLimits {
  const batch: ItemsLimit = { max: config.maxBatchItems };
  const updates: ItemsLimit = { max: config.maxWriteUpdates, error: tooManyInRequest };
  const overlaid = Math.min(WHAT_IF_UPDATES_MAX, config.maxWriteUpdates);
  const files: ItemsLimit = { max: FILES_MAX, error: holdsTooMany('files') };
  return {
    items: new Map([
      ...listLimits(config.maxBatchItems),
      [`${CONTRACT}.WriteRelationTuplesRequest.updates`, updates],
      [`${QUERIES}.WhatIfRequest.questions`, batch],
      [`${QUERIES}.WhatIfRequest.updates`, { max: overlaid, error: tooManyInRequest }],
      [`${QUERIES}.WriteTuplesRequest.updates`, updates],
      [
        `${QUERIES}.WriteTuplesRequest.preconditions`,
        { max: PRECONDITIONS_MAX, error: tooManyInRequest },
      ],
      [`${QUERIES}.PreviewQuestions.given`, { max: GIVEN_MAX, error: holdsTooMany('questions') }],
      [`${QUERIES}.WriteModelRequest.tests`, files],
      [`${QUERIES}.TestModelRequest.files`, files],
    ]),
    textBytes: new Map([
      [`${QUERIES}.ModelSource.json`, MODEL_TEXT_BYTES_MAX],
      [`${QUERIES}.ModelSource.gate`, MODEL_TEXT_BYTES_MAX],
      [`${CONTRACT}.CreateProjectRequest.model_json`, MODEL_TEXT_BYTES_MAX],
      [`${CONTRACT}.UpdateProjectRequest.model_json`, MODEL_TEXT_BYTES_MAX],
      [`${QUERIES}.AssertionFile.text`, ASSERTIONS_TEXT_BYTES_MAX],
    ]),
  };
}

function holdsTooMany(what: string): (field: string, max: number) => AppError {
  return (field, max) => fieldError(field, `holds more than ${max} ${what}`);
}
