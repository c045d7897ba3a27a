import { randomBytes } from 'node:crypto';
import type { Environment } from '../../config/load-options.ts';
import { secretFileOf, SecretFileWatch } from '../../config/secret-file-watch.ts';
import { secretFingerprint } from '../../config/secret-file.ts';
import { type Authenticator, createAuthenticator } from '../../http/service-tokens.ts';
import { type CredentialMetrics, CredentialReport } from '../../observability/credential-report.ts';
import type { EventLog } from '../../observability/logger.ts';
import { type NotifySettings, SERVICE_OPTIONS } from './settings.ts';

const CREDENTIAL = 'service_tokens';

/** The service tokens that are in force; `stop` ends the following of their file. */
export type LiveTokens = { readonly authenticator: Authenticator; stop(): Promise<void> };

/**
 * Follows the file of service tokens, where `env` names one; a file that cannot be used changes nothing. Fingerprints are
 * keyed with the stream secret, which instances that belong together share.
 */
export function followTokens(
  settings: NotifySettings,
  env: Environment,
  metrics: CredentialMetrics,
  log: EventLog,
): LiveTokens {
  const { serviceAuthTokens: values } = settings;
  // Without it there is one instance alone, whose fingerprint needs to equal no other.
  const key = settings.streamSecret ?? randomBytes(32);
  const authenticator = createAuthenticator(values);
  const report = new CredentialReport(metrics, log, CREDENTIAL, (secrets) =>
    secretFingerprint(key, CREDENTIAL, secrets),
  );
  report.began(values);
  const file = secretFileOf(SERVICE_OPTIONS, 'serviceAuthTokens', env);
  const onChanged = (tokens: readonly string[]): void => {
    authenticator.replace(tokens);
    report.changed(tokens);
  };
  const onProblem = (problem: string | null): void => report.failing(problem);
  const watch = new SecretFileWatch(
    file === undefined ? [] : [{ ...file, values, onChanged, onProblem }],
  );
  watch.start();
  return { authenticator, stop: () => watch.stop() };
}
