import { createSupervision, type Supervision } from '../host/process/supervision.ts';
import type { ProblemReporter } from '../model/ports.ts';

/** Supervisors that start before the rest of the runner is loaded, and so before there is a log. */
export type EarlySupervision = {
  readonly supervision: Supervision;
  /** Hands on what there was to report, and what will be. */
  readonly reportTo: (report: ProblemReporter) => void;
};

/** The first supervisor starts now: two programs one after the other, the longest of what a job waits for. */
export function startSupervision(): EarlySupervision {
  const held: Parameters<ProblemReporter>[] = [];
  let reporter: ProblemReporter = (...problem) => void held.push(problem);
  const supervision = createSupervision((...problem) => reporter(...problem));
  supervision.warmUp();
  const reportTo = (report: ProblemReporter): void => {
    reporter = report;
    for (const problem of held.splice(0)) report(...problem);
  };
  return { supervision, reportTo };
}
