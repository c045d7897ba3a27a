import { AssertionThreads } from '../assertions/assertion-threads.ts';
import type { Config } from '../config/options.ts';
import { AssertionTests } from '../gateway/models/assertion-tests.ts';
import type { ModelOptions } from '../gateway/models/model-options.ts';
import { ModelPreviews } from '../gateway/models/model-previews.ts';
import { QuestionFile } from '../gateway/reads/question-file.ts';
import { QuestionRecorder } from '../gateway/reads/question-recorder.ts';
import type { ReadScopes } from '../gateway/reads/read-scopes.ts';
import type { EventLog } from '../observability/logger.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import type { Metrics } from './metrics.ts';
import type { Services } from './services.ts';

/** The recorder of questions, where the settings ask for one. Closed by whoever stops the service. */
export function createRecorder(
  config: Config,
  metrics: Metrics,
  log: EventLog,
): QuestionRecorder | undefined {
  const { recordQuestionsEvery: every, recordQuestionsBytes: bytesMax } = config;
  if (every === 0) return undefined;
  const file = createQuestionFile(config, log);
  const recorder = new QuestionRecorder({ every, bytesMax, file });
  metrics.onCollect(() => {
    metrics.recordedQuestions.set(recorder.count);
    metrics.recordedBytes.set(recorder.bytes);
    if (file !== undefined) metrics.showQuestionFile(file.counts);
  });
  return recorder;
}

function createQuestionFile(config: Config, log: EventLog): QuestionFile | undefined {
  const { recordFile, recordFileBytes: bytesMax, recordQuestionsEvery: every } = config;
  if (recordFile === undefined) return undefined;
  // Several processes of one machine have one setting, and a file each.
  const path =
    config.instanceName === undefined ? recordFile : `${recordFile}.${config.instanceName}`;
  return new QuestionFile({
    path,
    bytesMax,
    every,
    onFailed: (error) => log('error', 'question_file_failed', { path, error: String(error) }),
  });
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
