import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type {
  ModelService,
  PreviewGuard,
  WriteModelRequest,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ModelWriteRequest } from '../../services/models/model-history.ts';
import { AppError } from '../../shared/app-error.ts';
import { deadlineOf } from '../connect/call-context.ts';
import { authorOf, type ModelOptions } from './model-options.ts';
import type { AnswerChange, PreviewProgress } from './model-previews.ts';
import { type SourcedModel, sourcedModel } from './model-source.ts';
import { activationToProto } from './model-to-proto.ts';
import { askedQueries } from './preview-queries.ts';
import { expectedVersionOf } from './version-methods.ts';

/** Questions that a refusal names. */
const CHANGES_NAMED = 3;

/** The handler that writes models. */
export function writeMethods(
  options: ModelOptions,
): Pick<ServiceImpl<typeof ModelService>, 'writeModel'> {
  const { history, activations } = options;
  return {
    async writeModel(request, context) {
      assertNoUnknownFields(request);
      const source = sourcedModel('model', request.model);
      const { projectId } = request;
      const expectedVersion = expectedVersionOf(request.expectedVersion);
      const write: ModelWriteRequest = {
        projectId,
        modelJson: source.modelJson,
        modelGate: source.modelGate,
        expectedVersion,
        comment: request.comment,
        force: request.force,
        author: authorOf(options, context),
        deadlineMs: deadlineOf(context, options),
      };
      await history.checkWrite(write);
      const { tests: files } = request;
      const { modelJson } = source;
      const { signal } = context;
      const test = { field: 'tests', files, modelJson, fallbackJson: '', signal };
      await options.tests.mustPass({ ...test, deadlineMs: write.deadlineMs });
      const guarded = await passGuard(options, request, source, context);
      const { problems: warnings } = source;
      if (request.dryRun) {
        const { deadlineMs } = write;
        const found = await activations.rehearse(projectId, modelJson, deadlineMs, signal);
        const activation = activationToProto(history.idOf(projectId), found);
        return { version: 0n, warnings, activation };
      }
      // The write must replace the version that the guard compared with.
      const outcome = await history.write({
        ...write,
        expectedVersion: expectedVersion ?? guarded,
      });
      const activation = activationToProto(history.idOf(projectId), outcome.activation);
      return { version: BigInt(outcome.version), warnings, activation };
    },
  };
}

/**
 * Refuses a model under which an answer would change that the request's guard keeps. The newest version that it
 * was compared with; null without a guard. Errors: MODEL_GUARD_REFUSED, those of a preview.
 */
async function passGuard(
  { history, previews }: ModelOptions,
  { guard, projectId: given }: WriteModelRequest,
  { modelJson }: SourcedModel,
  { signal }: HandlerContext,
): Promise<number | null> {
  if (guard === undefined) return null;
  if (!guard.refuseNewAllows && !guard.refuseNewDenies) {
    throw fieldError('guard', 'refuses nothing: set refuse_new_allows or refuse_new_denies');
  }
  const projectId = history.idOf(given);
  const queries = askedQueries('guard.questions', projectId, guard.questions);
  const newest = await history.newest(projectId);
  // Keyed by text: a draw may give a query many times, and records do.
  const named = new Set<string>();
  let last: PreviewProgress | undefined;
  const changesMax = queries.given.length + queries.sampled + queries.recorded;
  const call = { projectId, modelJson, queries, changesMax, signal };
  for await (const progress of previews.run(call)) {
    last = progress;
    for (const change of progress.changes) {
      if (named.size < CHANGES_NAMED && isRefused(guard, change)) named.add(textOfChange(change));
    }
  }
  if (last !== undefined) judge(guard, last, [...named].join('; '));
  return newest;
}

function isRefused(guard: PreviewGuard, { allowedAfter }: AnswerChange): boolean {
  return allowedAfter ? guard.refuseNewAllows : guard.refuseNewDenies;
}

function judge(guard: PreviewGuard, last: PreviewProgress, named: string): void {
  const counts = {
    new_allows: String(last.newAllows),
    new_denies: String(last.newDenies),
    failed: String(last.failed),
    answered: String(last.answered),
  };
  const refuse = (problem: string): never => {
    throw new AppError<AuthzReason>('MODEL_GUARD_REFUSED', `guard: ${problem}`, counts);
  };
  if (guard.refuseNewAllows && last.newAllows > 0) {
    refuse(`${last.newAllows} of ${last.answered} answers would become allows: ${named}`);
  }
  if (guard.refuseNewDenies && last.newDenies > 0) {
    refuse(`${last.newDenies} of ${last.answered} answers would become denies: ${named}`);
  }
  // A query that could not be decided may be such a change.
  if (last.failed > 0) refuse(`${last.failed} of ${last.answered} questions could not be decided`);
}

function textOfChange({ query, allowedAfter }: AnswerChange): string {
  const { tenantId, namespace, objectId, relation, userId } = query;
  const change = allowedAfter ? 'deny becomes allow' : 'allow becomes deny';
  const where = tenantId === '' ? '' : ` of tenant "${tenantId}"`;
  return `${namespace}:${objectId}#${relation}@user:${userId}${where} (${change})`;
}
