import type { MetricStore } from './metric-store.ts';

/** What a process was built from. */
export type BuildLabels = {
  /** The product's own. */
  readonly version: string;
  /** Of the source; `unknown` where nobody said. */
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
