import { LRUCache } from 'lru-cache';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProjectSettings } from './project-settings.ts';

type CachedSettings = {
  readonly settings: ProjectSettings;
  /** When they became known here: what is asked later and finds older ones has found another history. */
  readonly knownMs: number;
  untilMs: number;
  /** Time from which a call triggers a refresh, so that no call waits when they end. */
  aheadMs: number;
  /** Time of the last query that failed. */
  failedMs: number;
  /** A version that is known to exist, and when it became known; newer than `settings`: they are old. */
  neededVersion: number;
  neededMs: number;
};

export type SettingsCacheOptions = {
  readonly clock: Clock;
  /** How long settings are valid without a refresh. */
  readonly ttlMs: number;
  /** Projects remembered at most. */
  readonly cacheMax: number;
  /** Refreshes settings in use that end soon; called in the middle of `fresh`. */
  readonly askAhead: (id: string) => void;
};

/** Last share of their validity, in which settings are refreshed ahead. */
const AHEAD_SHARE = 0.25;

/** How long settings stay valid after a query that failed. */
const UNAVAILABLE_RETRY_MS = 1_000;
/** How long the database counts as away after that: longer than the next query takes to fail. */
const AWAY_MS = 30_000;

/** Settings of projects known here, and how long they are valid (P2 and P4 of SettingsSource). */
export class SettingsCache {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #askAhead: (id: string) => void;
  readonly #entries: LRUCache<string, CachedSettings>;
  /** Time of the last reset: settings queried before it are not trusted. */
  #forgottenMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, ttlMs, cacheMax, askAhead }: SettingsCacheOptions) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#askAhead = askAhead;
    this.#entries = new LRUCache({ max: cacheMax });
  }

  /** Settings that are fresh, and not known to be old. Hot. */
  fresh(id: string): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || isOld(entry)) return undefined;
    const nowMs = this.#clock.monotonicMs();
    if (entry.untilMs <= nowMs) return undefined;
    if (entry.aheadMs <= nowMs) {
      entry.aheadMs = Number.POSITIVE_INFINITY;
      this.#askAhead(id);
    }
    return entry.settings;
  }

  /** Same as `fresh`, whatever the age of the settings. Hot. */
  known(id: string): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined || isOld(entry) ? undefined : entry.settings;
  }

  /** The last known settings, old or not. */
  last(id: string): ProjectSettings | undefined {
    return this.#entries.get(id)?.settings;
  }

  /** The known settings if a query sent at `askedMs` read `version`: see SettingsSource.confirm. Hot. */
  confirm(id: string, version: number | null, askedMs: number): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || version === null || isOld(entry)) return undefined;
    const { settings } = entry;
    if (settings.version === version) {
      const untilMs = askedMs + this.#ttlMs;
      if (untilMs > entry.untilMs) {
        entry.untilMs = untilMs;
        entry.aheadMs = this.#aheadOf(untilMs);
      }
      return settings;
    }
    // Newer ones became known meanwhile; or were lost, if they were known before.
    return settings.version > version && entry.knownMs >= askedMs ? settings : undefined;
  }

  /** A version is known to exist. Returns whether that is news about what is remembered. */
  need(id: string, version: number): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined || version <= entry.neededVersion) return false;
    entry.neededVersion = version;
    entry.neededMs = this.#clock.monotonicMs();
    return true;
  }

  /** Forces a refresh of all settings before they count. */
  forgetAll(): void {
    this.#forgottenMs = this.#clock.monotonicMs();
    for (const entry of this.#entries.values()) {
      entry.neededVersion = Number.POSITIVE_INFINITY;
      entry.neededMs = this.#forgottenMs;
    }
  }

  forget(id: string): void {
    this.#entries.delete(id);
  }

  /** The last known settings, if the last query for them failed just now. */
  whileAway(id: string): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    const nowMs = this.#clock.monotonicMs();
    return entry === undefined || nowMs - entry.failedMs >= AWAY_MS ? undefined : entry.settings;
  }

  /** The database cannot be asked: what is not known to be old is believed for a moment longer. */
  extend(id: string): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || isOld(entry)) return undefined;
    entry.failedMs = this.#clock.monotonicMs();
    entry.untilMs = entry.failedMs + UNAVAILABLE_RETRY_MS;
    return entry.settings;
  }

  /** Newer settings than `version`, known since `askedMs` or later. */
  newerThan(id: string, version: number, askedMs: number): ProjectSettings | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.settings.version <= version) return undefined;
    return entry.knownMs >= askedMs ? entry.settings : undefined;
  }

  /** Remembers settings as the database had them after `askedMs`. */
  remember(id: string, settings: ProjectSettings, askedMs: number): void {
    const before = this.#entries.get(id);
    const isForgotten = this.#forgottenMs >= askedMs;
    const needed = before !== undefined && before.neededMs >= askedMs ? before : undefined;
    const untilMs = askedMs + this.#ttlMs;
    this.#entries.set(id, {
      settings,
      knownMs: this.#clock.monotonicMs(),
      untilMs,
      aheadMs: this.#aheadOf(untilMs),
      failedMs: Number.NEGATIVE_INFINITY,
      neededVersion: isForgotten ? Number.POSITIVE_INFINITY : (needed?.neededVersion ?? 0),
      neededMs: isForgotten ? this.#forgottenMs : (needed?.neededMs ?? Number.NEGATIVE_INFINITY),
    });
  }

  #aheadOf(untilMs: number): number {
    return untilMs - this.#ttlMs * AHEAD_SHARE;
  }
}

function isOld(entry: CachedSettings): boolean {
  return entry.settings.version < entry.neededVersion;
}
