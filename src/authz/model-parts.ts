import { AssertionThreads } from '../assertions/assertion-threads.ts';
import type { Config } from '../config/options.ts';
import { AssertionTests } from '../gateway/models/assertion-tests.ts';
import type { ModelOptions } from '../gateway/models/model-options.ts';
import { ModelPreviews } from '../gateway/models/model-previews.ts';
import { QuestionRecorder } from '../gateway/reads/question-recorder.ts';
import type { ReadScopes } from '../gateway/reads/read-scopes.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import type { Metrics } from './metrics.ts';
import type { Services } from './services.ts';

/** The recorder of questions, where the settings ask for one. */
export function createRecorder(config: Config, metrics: Metrics): QuestionRecorder | undefined {
  const { recordQuestionsEvery: every, recordQuestionsBytes: bytesMax } = config;
  if (every === 0) return undefined;
  const recorder = new QuestionRecorder({ every, bytesMax });
  metrics.onCollect(() => {
    metrics.recordedQuestions.set(recorder.count);
    metrics.recordedBytes.set(recorder.bytes);
  });
  return recorder;
}

/** What the methods of ModelService work with. */
export function modelOptions(
  config: Config,
  parts: {
    readonly services: Pick<Services, 'modelHistory' | 'models' | 'operatorName'>;
    readonly shards: ShardClient;
    readonly scopes: ReadScopes;
    readonly recorder: QuestionRecorder | undefined;
  },
): ModelOptions {
  const { services, shards, scopes, recorder } = parts;
  const timeoutMsMax = config.requestTimeoutMs;
  return {
    timeoutMsMax,
    history: services.modelHistory,
    activations: services.models,
    operatorName: (secret) => services.operatorName(secret),
    tests: new AssertionTests({
      threads: new AssertionThreads(),
      depthMax: config.maxCheckDepth,
      readBudget: config.maxCheckReads,
    }),
    previews: new ModelPreviews({ shards, scopes, recorder, timeoutMsMax }),
  };
}
