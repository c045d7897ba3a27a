import type { Service } from '../../bench/harness/service.ts';

/** What a scenario may be told on the command line. */
export type LoadOptions = {
  /** Size of the data set: 1 is 101,000 tuples. */
  readonly scale: number;
  readonly seconds: number;
  /** Arrivals per second; undefined takes the scenario's own default. */
  readonly rate: number | undefined;
  readonly connections: number;
  readonly seed: number;
};

/** Starts a service of its own with extra settings; stopped when the scenario ends. */
export type StartService = (env?: Readonly<Record<string, string>>) => Promise<Service>;

/** One load scenario. `run` returns named figures (milliseconds, per second, ratios) for the report. */
export type Scenario = {
  readonly name: string;
  readonly purpose: string;
  readonly question: string;
  run(options: LoadOptions, start: StartService): Promise<Record<string, unknown>>;
};
