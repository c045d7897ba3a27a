type VariableChange =
  | { readonly kind: 'value'; readonly name: string; readonly value: string }
  | { readonly kind: 'path'; readonly folder: string };

/**
 * What steps leave for those after them: variables (`env` of workflow and job, then GITHUB_ENV) and
 * folders in front of PATH (GITHUB_PATH). A background step works on a fork, whose changes are applied
 * once it is waited for.
 */
export class JobEnvironment {
  #values: Record<string, string>;
  /** The one added last comes first. */
  #paths: string[];
  readonly #changes: VariableChange[] = [];

  constructor(values: Readonly<Record<string, string>>, paths: readonly string[] = []) {
    this.#values = { ...values };
    this.#paths = [...paths];
  }

  /** Never changed in place: whoever holds it keeps a snapshot. */
  get values(): Readonly<Record<string, string>> {
    return this.#values;
  }

  set(name: string, value: string): void {
    this.#values = { ...this.#values, [name]: value };
    this.#changes.push({ kind: 'value', name, value });
  }

  addPath(folder: string): void {
    this.#paths = [folder, ...this.#paths.filter((other) => other !== folder)];
    this.#changes.push({ kind: 'path', folder });
  }

  /** `path` with the added folders in front. */
  pathInFrontOf(path: string | undefined): string {
    if (this.#paths.length === 0) return path ?? '';
    const added = this.#paths.join(':');
    return path === undefined || path === '' ? added : `${added}:${path}`;
  }

  fork(): JobEnvironment {
    return new JobEnvironment(this.#values, this.#paths);
  }

  /** Repeats here what was changed in `fork` since it was made. */
  apply(fork: JobEnvironment): void {
    for (const change of fork.#changes) {
      if (change.kind === 'value') this.set(change.name, change.value);
      else this.addPath(change.folder);
    }
  }
}
