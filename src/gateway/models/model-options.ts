import type { HandlerContext } from '@connectrpc/connect';
import type { ModelHistory } from '../../services/models/model-history.ts';
import type { StagedModels } from '../../services/models/staged-models.ts';
import type { ModelAuthor } from '../../services/projects/model-writes.ts';
import { type CallDefaults, callerOfCall, requestIdOfCall } from '../connect/call-context.ts';
import type { AssertionTests } from './assertion-tests.ts';
import type { ModelPreviews } from './model-previews.ts';

/** Parts that the methods of ModelService work with. */
export type ModelOptions = CallDefaults & {
  readonly history: ModelHistory;
  readonly activations: Pick<StagedModels, 'activation' | 'cancel' | 'rehearse'>;
  /** The name that versions and audit records give the holder of this operator secret. */
  readonly operatorName: (secret: string) => string;
  readonly tests: AssertionTests;
  readonly previews: ModelPreviews;
};

/** Header of the operator secret, which was checked before. */
const SECRET_HEADER = 'x-admin-secret';

/** The author of a model that is written by this call. */
export function authorOf(
  { operatorName }: Pick<ModelOptions, 'operatorName'>,
  context: HandlerContext,
): ModelAuthor {
  return {
    createdBy: operatorName(context.requestHeader.get(SECRET_HEADER) ?? ''),
    caller: callerOfCall(context),
    rpc: context.method.name,
    requestId: requestIdOfCall(context),
  };
}
