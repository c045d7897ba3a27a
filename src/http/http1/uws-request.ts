import type { RawRequest } from '../exchange/raw-message.ts';
import type { UwsRawRequest } from './uws-binary.ts';

const NO_PARAMETERS: readonly string[] = [];

/** The request that is being handled. A listener has one instance: usable until its handler returns. Hot. */
export class UwsRequest implements RawRequest {
  #raw: UwsRawRequest | null = null;
  #method = '';
  #parameters = NO_PARAMETERS;
  readonly isNameless = false;

  /** Replaces the request before. */
  of(raw: UwsRawRequest, method: string): this {
    this.#raw = raw;
    this.#method = method;
    this.#parameters = NO_PARAMETERS;
    return this;
  }

  forEach(onHeader: (name: string, value: string) => void): void {
    this.#raw?.forEach(onHeader);
  }

  getUrl(): string {
    return this.#raw?.getUrl() ?? '';
  }

  getCaseSensitiveMethod(): string {
    return this.#method;
  }

  getQuery(): string {
    return this.#raw?.getQuery() ?? '';
  }

  getParameter(index: number): string | undefined {
    return this.#parameters[index];
  }

  /** Sets the parameters of the route that takes the request. */
  setParameters(parameters: readonly string[]): void {
    this.#parameters = parameters;
  }
}
