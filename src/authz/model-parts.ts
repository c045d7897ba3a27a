import { AssertionThreads } from '../assertions/assertion-threads.ts';
import type { Config } from '../config/options.ts';
import { AssertionTests } from '../gateway/models/assertion-tests.ts';
import type { ModelOptions } from '../gateway/models/model-options.ts';
import { ModelPreviews } from '../gateway/models/model-previews.ts';
import { QueryFile } from '../gateway/reads/query-file.ts';
import { QueryRecorder } from '../gateway/reads/query-recorder.ts';
import type { ReadScopes } from '../gateway/reads/read-scopes.ts';
import type { EventLog } from '../observability/logger.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Services } from './services.ts';

/** The recorder of queries, where the settings ask for one. Closed by whoever stops the service. */
export function createRecorder(
  config: Config,
  metrics: Metrics,
  log: EventLog,
): QueryRecorder | undefined {
  const { recordQuestionsEvery: every, recordQuestionsBytes: bytesMax } = config;
  if (every === 0) return undefined;
  const file = createQueryFile(config, log);
  const recorder = new QueryRecorder({ every, bytesMax, file });
  metrics.onCollect(() => {
    metrics.recordedQueries.set(recorder.count);
    metrics.recordedBytes.set(recorder.bytes);
    if (file !== undefined) metrics.showQueryFile(file.counts);
  });
  return recorder;
}

function createQueryFile(config: Config, log: EventLog): QueryFile | undefined {
  const { recordFile, recordFileBytes: bytesMax, recordQuestionsEvery: every } = config;
  if (recordFile === undefined) return undefined;
  // Several processes of one machine have one setting, and a file each.
  const path =
    config.instanceName === undefined ? recordFile : `${recordFile}.${config.instanceName}`;
  return new QueryFile({
    path,
    bytesMax,
    every,
    onFailed: (error) => log('error', 'question_file_failed', { path, error: String(error) }),
  });
}

/** Parts of the methods of ModelService. */
export function modelOptions(
  config: Config,
  parts: {
    readonly services: Pick<Services, 'modelHistory' | 'models' | 'operatorName'>;
    readonly shards: ShardClient;
    readonly scopes: ReadScopes;
    readonly recorder: QueryRecorder | undefined;
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
