import type { Environment } from '../config/load-options.ts';
import { type Config, OPTIONS } from '../config/options.ts';
import { SecretFileWatch, secretPathOf, type WatchedSecret } from '../config/secret-file-watch.ts';
import { secretFingerprint } from '../config/secret-file.ts';
import { parseCallersFile } from '../gateway/callers/callers-file.ts';
import { Callers } from '../gateway/callers/callers.ts';
import type { Credentials, OpenService } from '../gateway/rpc/authorization.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { CredentialReport } from '../observability/credential-report.ts';
import type { EventLog } from '../observability/logger.ts';
import { AppError } from '../shared/app-error.ts';
import type { Metrics } from './metrics/metrics.ts';

export type LiveCredentialsOptions = {
  readonly config: Config;
  /** Variables that name the files of some secrets. */
  readonly env: Environment;
  /**
   * Key of fingerprints: the same on every instance of the deployment, and unknown to readers of
   * metrics.
   */
  readonly fingerprintKey: Uint8Array;
  readonly metrics: Pick<Metrics, 'callers' | 'credentialInfo' | 'credentialFileFailing'>;
  readonly log: EventLog;
};

/** The settings that follow their file, by what metrics and log call them. */
const NAMES = {
  serviceAuthTokens: 'service_tokens',
  adminApiSecrets: 'admin_secret',
  callers: 'callers',
} as const;

/**
 * Credentials of callers, from the settings and, once started, from the files that these name. A
 * file that cannot be used changes nothing. Whether there is authentication at all is decided at
 * the start: no file can end it.
 */
export class LiveCredentials {
  readonly credentials: Credentials;
  readonly callers: Callers;
  readonly #watch: SecretFileWatch;

  constructor(options: LiveCredentialsOptions) {
    const { config } = options;
    const callers = createCallers(options);
    let adminSecrets = config.adminApiSecrets;
    this.callers = callers;
    this.credentials = {
      callers,
      adminSecrets: () => adminSecrets,
      openServices: openServicesOf(config),
    };
    this.#watch = new SecretFileWatch([
      ...watched(options, 'serviceAuthTokens', (values) => callers.replaceTokens(values)),
      ...watched(options, 'adminApiSecrets', (values) => (adminSecrets = values)),
      ...watched(options, 'callers', ([text = '']) => callers.replaceFile(parseCallersFile(text))),
    ]);
  }

  start(): void {
    this.callers.start();
    this.#watch.start();
  }

  async stop(): Promise<void> {
    await this.#watch.stop();
    await this.callers.stop();
  }
}

/** Errors: CONFIG_INVALID naming the position in the document of callers. */
function createCallers({ config, metrics, log }: LiveCredentialsOptions): Callers {
  return new Callers({
    tokens: config.serviceAuthTokens,
    file: config.callers === undefined ? undefined : callersOf(config.callers),
    defaultProjectId: config.defaultProjectId,
    onKeysFetched: (issuer, problem) => {
      metrics.callers.keysFailing.set({ issuer }, problem === null ? 0 : 1);
      if (problem !== null) log('warn', 'jwks_not_fetched', { issuer, problem });
    },
  });
}

function callersOf(text: string): ReturnType<typeof parseCallersFile> {
  try {
    return parseCallersFile(text);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = `${OPTIONS.callers.env}: ${error.message}`;
    throw new AppError<AuthzReason>('CONFIG_INVALID', message, {}, error);
  }
}

function openServicesOf({ openServices }: Config): readonly OpenService[] {
  return openServices.filter((name): name is OpenService => name !== 'none');
}

function watched(
  options: LiveCredentialsOptions,
  name: keyof typeof NAMES,
  apply: (values: readonly string[]) => void,
): readonly WatchedSecret[] {
  const { config, env, fingerprintKey, metrics, log } = options;
  // Callers are one secret, whose parts are in its text.
  const values = [config[name] ?? []].flat();
  const credential = NAMES[name];
  const report = new CredentialReport(metrics, log, credential, (secrets) =>
    secretFingerprint(fingerprintKey, credential, secrets),
  );
  report.began(values);
  const path = secretPathOf(OPTIONS, name, env);
  if (path === undefined) return [];
  const parse = (text: string): readonly string[] => {
    const value = OPTIONS[name].parse(text.trim());
    if (typeof value !== 'string') return value ?? [];
    // Throws if invalid, before the new text comes into force.
    parseCallersFile(value);
    return [value];
  };
  const onChanged = (next: readonly string[]): void => {
    apply(next);
    report.changed(next);
  };
  return [{ path, parse, values, onChanged, onProblem: (problem) => report.failing(problem) }];
}
