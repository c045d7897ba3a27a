/** Items of BatchCheck of 100 over HTTP JSON and over gRPC; with directories of other checkouts these take turns. */
import { create, toBinary } from '@bufbuild/protobuf';
import { BatchCheckRequestSchema } from '../src/gen/workspace/v1/authz_service_pb.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { withCleanup } from './harness/cleanup.ts';
import { contestantsOf, SCOPE, startFilled, worldOf } from './harness/filled-service.ts';
import { Generator, grpcBodies, jsonBodies } from './harness/generator.ts';
import { inTurns } from './harness/in-turns.ts';
import { report } from './harness/options.ts';
import { BATCH_CHECK_PATH, batchAnswer } from './harness/target.ts';

const CALLERS = 32;
const ITEMS = 100;
const BATCHES = 100;

const world = worldOf();
const questions = mixedQuestions(world, BATCHES * ITEMS, 'uniform');
const batches = Array.from({ length: BATCHES }, (_, b) =>
  questions.slice(b * ITEMS, (b + 1) * ITEMS),
);
const messages = batches.map((batch) => ({
  ...SCOPE,
  items: batch.map(({ objectId, userId }) => ({
    namespace: 'doc',
    object_id: objectId,
    relation: 'viewer',
    subject_user_id: userId,
  })),
}));
const binary = batches.map((batch) =>
  toBinary(
    BatchCheckRequestSchema,
    create(BatchCheckRequestSchema, {
      projectId: SCOPE.project_id,
      tenantId: SCOPE.tenant_id,
      items: batch.map(({ objectId, userId }) => ({
        namespace: 'doc',
        objectId,
        relation: 'viewer',
        subjectUserId: userId,
      })),
    }),
  ),
);
const compared = batches.map((batch, b) => ({
  path: BATCH_CHECK_PATH,
  body: messages[b] as object, // as there is one for each batch
  answer: batchAnswer(batch).toString(),
}));

await withCleanup(async () => {
  const generator = new Generator();
  const services = await startFilled(world, compared);
  const [{ token } = { token: '' }] = services.map(({ service }) => service);
  for (const protocol of ['http1', 'grpc'] as const) {
    const load = {
      protocol,
      path: BATCH_CHECK_PATH,
      bodies: protocol === 'http1' ? jsonBodies(messages) : grpcBodies(binary),
      operations: batches.map(() => ITEMS),
      callers: CALLERS,
    };
    const contestants = contestantsOf(generator, services, load, token);
    for (const row of await inTurns(contestants)) report({ load: `items, ${protocol}`, ...row });
  }
});
