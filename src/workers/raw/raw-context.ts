import { canonicalJson } from '../../model/canonical-json.ts';
import {
  type ConditionContext,
  type LazyContext,
  parseContext,
} from '../../model/conditions/conditions.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { RawFields } from './raw-fields.ts';

/** Source of the current bytes of a body, whose positions do not change. */
export type ByteSource = { readonly bytes: Uint8Array };

/** The context that a scanner found in a body; null where the body has none. It stays when the scanner continues. */
export function rawContextOf(fields: RawFields, source: ByteSource): RawContext | null {
  return fields.contextEnd === 0 ? null : new RawContext(fields, source);
}

/** Context of a raw query: JSON, parsed on first use, or the value decoded from a binary body. */
export class RawContext implements LazyContext {
  readonly #source: ByteSource;
  readonly #start: number;
  readonly #end: number;
  readonly #isNested: boolean;
  #value: ConditionContext | undefined;

  constructor(fields: RawFields, source: ByteSource) {
    this.#source = source;
    this.#start = fields.contextStart;
    this.#end = fields.contextEnd;
    this.#isNested = fields.isContextNested;
    this.#value = fields.context === null ? undefined : this.#ordered(fields.context);
  }

  value(): ConditionContext {
    return (this.#value ??= this.#ordered(JSON.parse(this.#text()) as ConditionContext));
  }

  /** The canonical text, as a parsed request has it. */
  get json(): string {
    return canonicalJson(this.value() as JsonObject);
  }

  /** Members of objects within come in the order of the canonical text, in which the general path's do. */
  #ordered(value: ConditionContext): ConditionContext {
    if (!this.#isNested) return value;
    return parseContext(canonicalJson(value as JsonObject)) ?? value;
  }

  #text(): string {
    const { buffer, byteOffset } = this.#source.bytes;
    return Buffer.from(buffer, byteOffset + this.#start, this.#end - this.#start).toString('utf8');
  }
}
