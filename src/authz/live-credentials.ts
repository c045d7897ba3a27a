import type { Environment } from '../config/load-options.ts';
import { type Config, OPTIONS } from '../config/options.ts';
import { secretFileOf, SecretFileWatch, type WatchedSecret } from '../config/secret-file-watch.ts';
import { secretFingerprint } from '../config/secret-fingerprint.ts';
import type { Credentials } from '../gateway/rpc/authorization.ts';
import { createAuthenticator } from '../http/service-tokens.ts';
import { type CredentialMetrics, CredentialReport } from '../observability/credential-report.ts';
import type { EventLog } from '../observability/logger.ts';

export type LiveCredentialsOptions = {
  readonly config: Config;
  /** Names the files of secrets that stand in some. */
  readonly env: Environment;
  /** Of fingerprints: the same on every instance of the deployment, and unknown to who reads metrics. */
  readonly fingerprintKey: Uint8Array;
  readonly metrics: CredentialMetrics;
  readonly log: EventLog;
};

/** The settings that follow their file, by what metrics and log call them. */
const NAMES = { serviceAuthTokens: 'service_tokens', adminApiSecrets: 'admin_secret' } as const;

/**
 * What callers must know, from the settings and, once started, from the files that these name. A file that cannot
 * be used changes nothing. Whether there is authentication at all is decided at the start: neither file
 * can end it.
 */
export class LiveCredentials {
  readonly credentials: Credentials;
  readonly #watch: SecretFileWatch;

  constructor(options: LiveCredentialsOptions) {
    const { serviceAuthTokens, adminApiSecrets } = options.config;
    const authenticator = createAuthenticator(serviceAuthTokens);
    let adminSecrets = adminApiSecrets;
    this.credentials = { authenticator, adminSecrets: () => adminSecrets };
    this.#watch = new SecretFileWatch([
      ...watched(options, 'serviceAuthTokens', (values) => authenticator.replace(values)),
      ...watched(options, 'adminApiSecrets', (values) => (adminSecrets = values)),
    ]);
  }

  start(): void {
    this.#watch.start();
  }

  async stop(): Promise<void> {
    await this.#watch.stop();
  }
}

function watched(
  options: LiveCredentialsOptions,
  name: keyof typeof NAMES,
  apply: (values: readonly string[]) => void,
): readonly WatchedSecret[] {
  const { config, env, fingerprintKey, metrics, log } = options;
  const values = config[name];
  const credential = NAMES[name];
  const report = new CredentialReport(metrics, log, credential, (secrets) =>
    secretFingerprint(fingerprintKey, credential, secrets),
  );
  report.began(values);
  const file = secretFileOf(OPTIONS, name, env);
  if (file === undefined) return [];
  const onChanged = (next: readonly string[]): void => {
    apply(next);
    report.changed(next);
  };
  return [{ ...file, values, onChanged, onProblem: (problem) => report.failing(problem) }];
}
