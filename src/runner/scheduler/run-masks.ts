import { secretsOfRun } from '../language/references.ts';
import type { SecretSource } from '../model/ports.ts';
import type { Workflow } from '../model/workflow.ts';
import { createMasker, type Masker } from '../step-output/masker.ts';
import { namedOf } from './given-values.ts';

/**
 * Hides secrets in what leaves the machine: those that any job of the run names, of all environments, and
 * what its calls made of them. A job's own log hides less: the secrets of that job.
 */
export class RunMasks {
  readonly #source: SecretSource;
  readonly #workflow: Workflow;
  readonly #given: Readonly<Record<string, string>>;
  readonly #ofJobs = new Set<string>();
  /** Found once, when the first asks: it takes a look at every expression. */
  #names: { readonly upper: readonly string[] | undefined } | undefined;
  /** One for the run, since a long secret takes its time to add. */
  readonly #masker = createMasker();

  /** `given`: the secrets that came with the start. */
  constructor(source: SecretSource, workflow: Workflow, given: Readonly<Record<string, string>>) {
    this.#source = source;
    this.#workflow = workflow;
    this.#given = given;
  }

  /** Adds what a job hides: a call may have made it of secrets, so that no secret is equal to it. */
  add(values: readonly string[]): void {
    for (const value of values) this.#ofJobs.add(value);
  }

  /**
   * The masker for what leaves now, which hides what a secret was before, too. Errors: INVALID_VALUE when
   * there is too much to hide. Cost: decrypts each.
   */
  async masker(): Promise<Masker> {
    this.#names ??= { upper: secretsOfRun(this.#workflow) };
    const names = this.#names.upper;
    const stored = (await this.#source.masksFor?.(undefined, names)) ?? [];
    const given = Object.values(namedOf(this.#given, names));
    for (const value of [...stored, ...given, ...this.#ofJobs]) this.#masker.add(value);
    return this.#masker;
  }
}
