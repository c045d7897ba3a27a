/** An action, or a workflow of another repository, that a run needs. */
export type NeededAction = {
  /** `owner/repo@ref`. */
  readonly name: string;
  /** `fetched`: by git, at a commit that is pinned. `placed`: a folder that somebody put there. */
  readonly source: 'built-in' | 'fetched' | 'placed' | 'mirror' | 'missing';
  /** Of those fetched; 40 or 64 hexadecimal digits. */
  readonly commit?: string | undefined;
};
