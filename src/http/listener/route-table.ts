import { assert } from '../../shared/assert.ts';
import type { HeaderFields } from '../exchange/header-fields.ts';
import type { HostGuard } from '../exchange/host-guard.ts';
import type { HttpExchange } from '../exchange/http-exchange.ts';
import type { NodeRequest } from '../http1/node-message.ts';
import type { UwsRequest } from '../http1/uws-request.ts';
import { RouteMatch } from './route-match.ts';

export type HttpHandler = (exchange: HttpExchange) => void;
export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type Take = (exchange: HttpExchange) => void;
type Route = { readonly method: HttpMethod | ''; readonly match: RouteMatch; readonly take: Take };
/** Routes of one path without parameters: by verb, and for all other verbs. */
type FixedRoutes = { readonly byMethod: Map<HttpMethod, Take>; readonly others: Take };

/** The routes of HTTP/1. Finds the one that takes a request. Routes are added until `complete`; requests come after it. */
export class RouteTable {
  readonly #fields: HeaderFields;
  readonly #hostGuard: HostGuard | undefined;
  readonly #routes: Route[] = [];
  readonly #fixedRoutes = new Map<string, FixedRoutes>();
  readonly #methodsOfPattern = new Map<string, Set<HttpMethod>>();
  #fallback: HttpHandler = (exchange) => exchange.sendEmpty(404);

  /** `fields` are those of the request that is being handled. */
  constructor(fields: HeaderFields, hostGuard: HostGuard | undefined) {
    this.#fields = fields;
    this.#hostGuard = hostGuard;
  }

  /** Adds a route; see HttpServer. */
  add(method: HttpMethod, pattern: string, handler: HttpHandler, needsHost: boolean): void {
    let methods = this.#methodsOfPattern.get(pattern);
    if (methods === undefined) this.#methodsOfPattern.set(pattern, (methods = new Set()));
    assert(!methods.has(method), 'a route is registered once');
    methods.add(method);
    const named = this.#guarded(handler);
    const guarded: Take = needsHost
      ? named
      : (exchange) => (this.#fields.isNameless ? handler : named)(exchange);
    this.#routes.push({ method, match: new RouteMatch(pattern), take: guarded });
  }

  /** Takes every request that no route takes. */
  fallback(handler: HttpHandler): void {
    this.#fallback = handler;
  }

  /** Adds the refusals of other verbs of each pattern, and the fallback; sorts all in order of preference. Call it once. */
  complete(): void {
    for (const [pattern, methods] of this.#methodsOfPattern) {
      const allow = ['allow', [...methods].join(', ')];
      const refuse = this.#guarded((exchange) => exchange.sendEmpty(405, allow));
      this.#routes.push({ method: '', match: new RouteMatch(pattern), take: refuse });
    }
    const fallback = this.#guarded((exchange) => this.#fallback(exchange));
    this.#routes.push({ method: '', match: new RouteMatch('/*'), take: fallback });
    // The sort is stable, so that a verb of a pattern comes before its refusal.
    this.#routes.sort((a, b) => a.match.rank - b.match.rank);
    for (const { method, match, take } of this.#routes) this.#addFixed(method, match, take);
  }

  /** Yields each verb of each path without parameters, once complete. */
  *fixed(): Iterable<{ readonly method: HttpMethod; readonly path: string; readonly take: Take }> {
    for (const [path, { byMethod }] of this.#fixedRoutes) {
      for (const [method, take] of byMethod) yield { method, path, take };
    }
  }

  /** Passes a request to its route. One that no route takes, such as `*`, goes to the fallback. Hot. */
  dispatch(exchange: HttpExchange, request: UwsRequest | NodeRequest): void {
    const method = request.getCaseSensitiveMethod();
    const fixed = this.#fixedRoutes.get(request.getUrl());
    if (fixed !== undefined) {
      (fixed.byMethod.get(method as HttpMethod) ?? fixed.others)(exchange);
      return;
    }
    for (const route of this.#routes) {
      if (route.match.rank === 0 || (route.method !== '' && route.method !== method)) continue;
      const parameters = route.match.match(request.getUrl());
      if (parameters === null) continue;
      request.setParameters(parameters);
      route.take(exchange);
      return;
    }
    this.#guarded((one) => this.#fallback(one))(exchange);
  }

  #guarded(handler: HttpHandler): Take {
    if (this.#hostGuard === undefined) return handler;
    const { hosts, refuse } = this.#hostGuard;
    return (exchange) => {
      if (hosts.accepts(exchange.header('host'), undefined)) handler(exchange);
      else refuse(exchange);
    };
  }

  #addFixed(method: HttpMethod | '', match: RouteMatch, take: Take): void {
    if (match.rank !== 0) return;
    const { pattern } = match;
    const known = this.#fixedRoutes.get(pattern);
    const byMethod = known?.byMethod ?? new Map<HttpMethod, Take>();
    if (method !== '') byMethod.set(method, take);
    this.#fixedRoutes.set(pattern, {
      byMethod,
      others: method === '' ? take : (known?.others ?? take),
    });
  }
}
