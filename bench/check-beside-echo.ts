/**
 * Checks over HTTP JSON or gRPC (BENCH_PROTOCOL) with a bearer token, beside a raw server that reads the same requests and
 * answers with as many bytes: uWebSockets.js, or node:http2. At saturation, and at half of the rate of the slowest, evenly spaced.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { create, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema } from '../src/gen/workspace/v1/authz_service_pb.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { atEnd, withCleanup } from './harness/cleanup.ts';
import { contestantsOf, SCOPE, startFilled, worldOf } from './harness/filled-service.ts';
import { Generator, grpcBodies, jsonBodies } from './harness/generator.ts';
import { inTurns } from './harness/in-turns.ts';
import { report } from './harness/options.ts';
import { CHECK_PATH } from './harness/target.ts';

const CALLERS = 32;
const QUESTIONS = 2_000;
const COMPARED = 200;
const protocol = process.env['BENCH_PROTOCOL'] === 'grpc' ? 'grpc' : 'http1';

const world = worldOf();
const questions = mixedQuestions(world, QUESTIONS, 'uniform');
const messages = questions.map(({ objectId, userId }) => ({
  ...SCOPE,
  namespace: 'doc',
  object_id: objectId,
  relation: 'viewer',
  subject_user_id: userId,
}));
const bodies =
  protocol === 'http1'
    ? jsonBodies(messages)
    : grpcBodies(
        questions.map(({ objectId, userId }) =>
          toBinary(
            CheckRequestSchema,
            create(CheckRequestSchema, {
              projectId: SCOPE.project_id,
              tenantId: SCOPE.tenant_id,
              namespace: 'doc',
              objectId,
              relation: 'viewer',
              subjectUserId: userId,
            }),
          ),
        ),
      );
const compared = questions.slice(0, COMPARED).map(({ allow }, i) => ({
  path: CHECK_PATH,
  body: messages[i] as object, // as there is one for each question
  answer: JSON.stringify({ allowed: allow }),
}));

await withCleanup(async () => {
  const generator = new Generator();
  const services = await startFilled(world, compared);
  const [{ token } = { token: '' }] = services.map(({ service }) => service);
  const echo = spawn(process.execPath, [`bench/echo-${protocol}.ts`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ECHO_TOKEN: token },
  });
  atEnd(() => echo.kill());
  const ended = once(echo, 'exit').then(() => {
    throw new Error('the echo ended');
  });
  ended.catch(() => undefined);
  const [line] = (await Promise.race([once(echo.stdout, 'data'), ended])) as [Buffer];
  const raw = { name: 'raw echo', port: Number(line.toString()), pid: echo.pid ?? 0 };
  const load = {
    protocol,
    path: CHECK_PATH,
    bodies,
    operations: bodies.map(() => 1),
    callers: CALLERS,
  } as const;
  const at = (perSecond: number) =>
    contestantsOf(generator, [...services, raw], { ...load, perSecond }, token);
  const saturated = await inTurns(at(0));
  for (const row of saturated) report({ load: `${CALLERS} callers`, ...row });
  const half = Math.round(Math.min(...saturated.map(({ perSecond }) => perSecond)) / 2);
  for (const row of await inTurns(at(half))) report({ load: `${half} a second`, ...row });
});
