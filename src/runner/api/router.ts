import { AppError } from '../../shared/app-error.ts';
import type { Answer } from './answer.ts';
import type { ApiCall } from './call.ts';

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** How the body of a request is read: JSON that must or may be there, or bytes as they come. */
export type BodyRule =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly isRequired: boolean; readonly maxBytes?: number }
  | { readonly kind: 'bytes'; readonly maxBytes: number };

export type ApiRoute = {
  readonly method: RouteMethod;
  /** `/api/runs/:id/logs`; a `:name` matches one segment. */
  readonly pattern: string;
  readonly body?: BodyRule;
  readonly handle: (call: ApiCall) => Answer | Promise<Answer>;
};

/** What a path and method lead to. `allow` holds every method of the path, HEAD and OPTIONS too. */
export type Match =
  | {
      readonly kind: 'route';
      readonly route: ApiRoute;
      readonly parameters: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'wrong_method'; readonly allow: string }
  | { readonly kind: 'none' };

type Compiled = { readonly route: ApiRoute; readonly segments: readonly string[] };

/**
 * Finds routes. Of two patterns that match, the one whose first difference is a plain segment wins.
 * HEAD is served by GET. Cost: O(routes with as many segments).
 */
export class Router {
  readonly #byLength = new Map<number, Compiled[]>();

  constructor(routes: readonly ApiRoute[]) {
    for (const route of routes) {
      const segments = route.pattern.split('/').slice(1);
      const list = this.#byLength.get(segments.length) ?? [];
      list.push({ route, segments });
      this.#byLength.set(segments.length, list);
    }
    for (const list of this.#byLength.values()) list.sort(bySpecificity);
  }

  /**
   * `path` is taken as sent: it is split first and each parameter percent-decoded once, so that an
   * encoded slash never makes a segment.
   * Errors: INVALID_REQUEST for percent-encoding that is no UTF-8.
   */
  match(method: string, path: string): Match {
    const given = path.split('/').slice(1);
    const candidates = (this.#byLength.get(given.length) ?? []).filter(({ segments }) =>
      segments.every((segment, index) => isTaken(segment, given[index] ?? '')),
    );
    if (candidates.length === 0) return { kind: 'none' };
    const wanted = method === 'HEAD' ? 'GET' : method;
    const found = candidates.find(({ route }) => route.method === wanted);
    if (found === undefined) return { kind: 'wrong_method', allow: allowOf(candidates) };
    return { kind: 'route', route: found.route, parameters: parametersOf(found.segments, given) };
  }
}

function isTaken(segment: string, given: string): boolean {
  return segment.startsWith(':') ? given !== '' : segment === given;
}

function bySpecificity(a: Compiled, b: Compiled): number {
  for (let i = 0; i < a.segments.length; i++) {
    const isPlainA = a.segments[i]?.startsWith(':') === false;
    const isPlainB = b.segments[i]?.startsWith(':') === false;
    if (isPlainA !== isPlainB) return isPlainA ? -1 : 1;
  }
  return 0;
}

function allowOf(candidates: readonly Compiled[]): string {
  const methods = new Set<string>(candidates.map(({ route }) => route.method));
  if (methods.has('GET')) methods.add('HEAD');
  methods.add('OPTIONS');
  return [...methods].sort().join(', ');
}

function parametersOf(
  segments: readonly string[],
  given: readonly string[],
): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  segments.forEach((segment, index) => {
    if (segment.startsWith(':')) parameters[segment.slice(1)] = decodeOnce(given[index] ?? '');
  });
  return parameters;
}

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new AppError('INVALID_REQUEST', 'the path holds broken percent-encoding', {}, error);
  }
}
