import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type {
  ModelService,
  PreviewModelResponseSchema,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import { fieldError } from '../../model/reasons.ts';
import type { ModelOptions } from './model-options.ts';
import type { PreviewProgress } from './model-previews.ts';
import { sourcedModel } from './model-source.ts';
import { askedQueries, queryToProto } from './preview-queries.ts';

const CHANGES = 1_000;
const CHANGES_MAX = 10_000;

/** The handler that previews models. */
export function previewMethods({
  history,
  previews,
}: ModelOptions): Pick<ServiceImpl<typeof ModelService>, 'previewModel'> {
  return {
    async *previewModel(request, { signal }) {
      assertNoUnknownFields(request);
      const { modelJson } = sourcedModel('model', request.model);
      const projectId = history.idOf(request.projectId);
      const queries = askedQueries('questions', projectId, request.questions);
      const { changesMax: wanted } = request;
      if (wanted < 0 || wanted > CHANGES_MAX) {
        throw fieldError('changes_max', `must lie between 0 and ${CHANGES_MAX}`);
      }
      const changesMax = wanted === 0 ? CHANGES : wanted;
      const { seed } = queries;
      let last: PreviewProgress | undefined;
      for await (const progress of previews.run({
        projectId,
        modelJson,
        queries,
        changesMax,
        signal,
      })) {
        last = progress;
        yield progressToProto(progress, seed, false);
      }
      if (last !== undefined) yield progressToProto({ ...last, changes: [] }, seed, true);
    },
  };
}

function progressToProto(
  { changes, isTruncated, ...counts }: PreviewProgress,
  seed: bigint,
  done: boolean,
): MessageInitShape<typeof PreviewModelResponseSchema> {
  return {
    ...counts,
    changes: changes.map(({ query, ...answers }) => ({
      question: queryToProto(query),
      ...answers,
    })),
    truncated: isTruncated,
    done,
    seed,
  };
}
