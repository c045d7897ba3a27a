/** Why an instance does not take traffic. */
export type NotReadyReason = 'starting' | 'draining' | 'postgres' | 'workers' | 'clock';

/** The answer of /readyz. */
export type ReadinessReport = { readonly statusCode: 200 | 503; readonly body: string };

/**
 * Whether this instance takes traffic. It starts as `starting`, becomes ready once, and never comes
 * back from `draining`. Meanwhile Postgres and the workers come and go.
 */
export class Readiness {
  #phase: 'starting' | 'ready' | 'draining' = 'starting';
  #postgres: 'up' | 'degraded' | 'down' = 'up';
  #postgresRefusal: string | undefined;
  #isTimeCertain = true;
  #workersReady: () => boolean = () => true;
  #failingLoops: () => readonly string[] = () => [];

  /** Marks the service ready. `workersReady` is called for every report. */
  markReady(workersReady: () => boolean): void {
    if (this.#phase !== 'starting') return;
    this.#phase = 'ready';
    this.#workersReady = workersReady;
  }

  /** Sets `failing`, which names the failing background loops; it is called for every report. */
  watchLoops(failing: () => readonly string[]): void {
    this.#failingLoops = failing;
  }

  beginDrain(): void {
    this.#phase = 'draining';
  }

  /**
   * `degraded`: Postgres is away or refuses, but decisions are made; `down`: they may not be either, or it hangs. `refusal` is
   * what it refuses.
   */
  setPostgres(state: 'up' | 'degraded' | 'down', refusal?: string): void {
    this.#postgres = state;
    this.#postgresRefusal = refusal;
  }

  /** Whether the database's time is known as well as it must be: expiry is decided by it. */
  setTimeCertain(isCertain: boolean): void {
    this.#isTimeCertain = isCertain;
  }

  /** Why no traffic should come, or null. */
  get notReadyReason(): NotReadyReason | null {
    if (this.#phase !== 'ready') return this.#phase;
    if (this.#postgres === 'down') return 'postgres';
    if (!this.#isTimeCertain) return 'clock';
    return this.#workersReady() ? null : 'workers';
  }

  get isReady(): boolean {
    return this.notReadyReason === null;
  }

  report(): ReadinessReport {
    const reason = this.notReadyReason;
    const refusal = this.#postgresRefusal;
    const why = this.#postgres === 'up' || refusal === undefined ? {} : { postgres: refusal };
    if (reason !== null) {
      return { statusCode: 503, body: JSON.stringify({ status: 'unavailable', reason, ...why }) };
    }
    // Without PostgreSQL nearly all of them fail, which is no news.
    const degraded = this.#postgres === 'degraded' ? ['postgres'] : this.#failingLoops();
    return { statusCode: 200, body: JSON.stringify({ status: 'ready', degraded, ...why }) };
  }
}
