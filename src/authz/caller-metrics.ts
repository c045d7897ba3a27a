import type { Gauge } from 'prom-client';
import type { CallCounts } from '../gateway/callers/caller.ts';
import type { HotCounter, MetricStore } from '../observability/metric-store.ts';

/** Calls by the names of callers, of which there are a hundred at most, and `other`. */
export type CallerMetrics = {
  readonly of: (caller: string) => {
    readonly accepted: HotCounter;
    readonly rate: HotCounter;
    readonly scope: HotCounter;
  };
  readonly keysFailing: Gauge<'issuer'>;
};

export function createCallerMetrics(store: MetricStore): CallerMetrics {
  const calls = store.counters({
    name: 'gatehouse_caller_calls_total',
    help: 'Calls within the rate of their caller, by its name.',
  });
  const refusals = store.counters({
    name: 'gatehouse_caller_refusals_total',
    help: 'Calls refused for who made them, by the name of the caller: beyond its rate or its scopes.',
  });
  const known = new Map<string, ReturnType<CallerMetrics['of']>>();
  return {
    of: (caller) => {
      let cells = known.get(caller);
      if (cells === undefined) {
        cells = {
          accepted: calls.cell({ caller }),
          rate: refusals.cell({ caller, reason: 'rate' }),
          scope: refusals.cell({ caller, reason: 'scope' }),
        };
        known.set(caller, cells);
      }
      return cells;
    },
    keysFailing: store.gauge({
      name: 'gatehouse_jwks_failing',
      help: '1 while the keys of an issuer of JWTs cannot be fetched and those that were still count, else 0.',
      labelNames: ['issuer'],
    }),
  };
}

/** Brings the series up to what was counted. */
export function showCallers(metrics: CallerMetrics, counts: ReadonlyMap<string, CallCounts>): void {
  for (const [caller, { accepted, rateLimited, outOfScope }] of counts) {
    const cells = metrics.of(caller);
    cells.accepted.add(accepted - cells.accepted.value);
    cells.rate.add(rateLimited - cells.rate.value);
    cells.scope.add(outOfScope - cells.scope.value);
  }
}
