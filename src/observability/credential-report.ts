import type { Gauge } from 'prom-client';
import type { EventLog } from './logger.ts';
import type { MetricStore } from './metric-store.ts';

/** Which secrets are in force, and whether their files can be read; never the secrets. */
export type CredentialMetrics = {
  readonly credentialInfo: Gauge<'credential' | 'fingerprint'>;
  readonly credentialFileFailing: Gauge<'credential'>;
};

/** Both gauges of one service, whose series begin with `prefix`. */
export function createCredentialMetrics(store: MetricStore, prefix: string): CredentialMetrics {
  return {
    credentialInfo: store.gauge({
      name: `${prefix}_credential_info`,
      help: 'Always 1; the fingerprint is the same on every instance where the same secrets are in force.',
      labelNames: ['credential', 'fingerprint'],
    }),
    credentialFileFailing: store.gauge({
      name: `${prefix}_credential_file_failing`,
      help: '1 while the file of a credential cannot be used and what was in force before still is, else 0.',
      labelNames: ['credential'],
    }),
  };
}

/** Reports one credential, by metrics and log. */
export class CredentialReport {
  readonly #metrics: CredentialMetrics;
  readonly #log: EventLog;
  readonly #credential: string;
  readonly #fingerprintOf: (secrets: readonly string[]) => string;
  #shown: string | undefined;

  /**
   * `credential` is the value of the label; `fingerprintOf` returns the part of secrets that may be
   * shown.
   */
  constructor(
    metrics: CredentialMetrics,
    log: EventLog,
    credential: string,
    fingerprintOf: (secrets: readonly string[]) => string,
  ) {
    this.#metrics = metrics;
    this.#log = log;
    this.#credential = credential;
    this.#fingerprintOf = fingerprintOf;
  }

  /** Records the secrets in force from the start; nothing, where the list is empty. */
  began(secrets: readonly string[]): void {
    const credential = this.#credential;
    this.#metrics.credentialFileFailing.set({ credential }, 0);
    if (secrets.length > 0) this.#show(secrets);
  }

  changed(secrets: readonly string[]): void {
    const fingerprint = this.#show(secrets);
    const credential = this.#credential;
    this.#log('info', 'credential_changed', { credential, fingerprint, entries: secrets.length });
  }

  /** The file cannot be used for this reason; null: it can again. */
  failing(problem: string | null): void {
    const credential = this.#credential;
    this.#metrics.credentialFileFailing.set({ credential }, problem === null ? 0 : 1);
    if (problem === null) this.#log('info', 'credential_file_recovered', { credential });
    else this.#log('error', 'credential_file_failing', { credential, problem });
  }

  #show(secrets: readonly string[]): string {
    const fingerprint = this.#fingerprintOf(secrets);
    const credential = this.#credential;
    const { credentialInfo } = this.#metrics;
    // prom-client forgets one series by all of its labels alone; the last fingerprint is the only other.
    if (this.#shown !== undefined) credentialInfo.remove({ credential, fingerprint: this.#shown });
    credentialInfo.set({ credential, fingerprint }, 1);
    this.#shown = fingerprint;
    return fingerprint;
  }
}
