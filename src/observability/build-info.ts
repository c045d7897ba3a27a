import { readFileSync } from 'node:fs';
import type { MetricStore } from './metric-store.ts';

/** Build of a process. */
export type BuildLabels = {
  /** The product's own. */
  readonly version: string;
  /** Commit of the source; `unknown` where it was not given. */
  readonly commit: string;
};

/** `<prefix>_build_info`: always 1, distinguished by its labels. */
export function registerBuildInfo(store: MetricStore, prefix: string, build: BuildLabels): void {
  const { version, commit } = build;
  store
    .gauge({
      name: `${prefix}_build_info`,
      help: 'Always 1; the labels name the build.',
      labelNames: ['version', 'commit', 'node'],
    })
    .set({ version, commit, node: process.version }, 1);
}

/** The version of this package, as its package.json states it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
