import type { Counter } from 'prom-client';
import type { HotCounter, MetricStore } from '../observability/metric-store.ts';
import type { ActivationMetrics } from '../services/models/activation-job.ts';

/** What becomes of projects' models. */
export type ModelMetrics = {
  readonly models: ActivationMetrics & {
    /** Loads of stored models that would be refused today. */
    readonly unsound: HotCounter;
  };
};

export function createModelMetrics(store: MetricStore): ModelMetrics {
  const count = (name: string, help: string): HotCounter => store.counters({ name, help }).cell({});
  const scanned = count(
    'gatehouse_model_scanned_tuples_total',
    'Stored tuples that were looked at before a model came into force.',
  );
  const activations: Counter<'outcome'> = store.counter<'outcome'>({
    name: 'gatehouse_model_activations_total',
    help: 'Models that were pending, by what became of them.',
    labelNames: ['outcome'],
  });
  for (const outcome of ['active', 'refused', 'cancelled']) activations.inc({ outcome }, 0);
  return {
    models: {
      unsound: count(
        'gatehouse_unsound_models_loaded_total',
        'Loads of stored models that would be refused if they were written today.',
      ),
      scanned: (tuples) => scanned.add(tuples),
      ended: (outcome) => activations.inc({ outcome }),
    },
  };
}
