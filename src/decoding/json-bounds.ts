import { StructSchema } from '@bufbuild/protobuf/wkt';
import { JsonScan, JsonSyntaxProblem } from './json-scan.ts';
import { MessageShapes } from './message-shape.ts';

/** What JSON that no message describes may hold. */
export type JsonBounds = {
  /** Members of objects and entries of lists, at any depth. */
  readonly valuesMax: number;
  readonly bytesMax: number;
};

/** Shorter JSON is not looked at: whatever is in it costs nothing that counts. */
const SHORT_BYTES = 4_096;
const STRUCT = new MessageShapes({}).of(StructSchema);

/**
 * Refuses JSON that holds too much, before it is parsed; what is no JSON is left to the parser. O(bytes), no allocation.
 * Errors: FIELD_TOO_LARGE, BODY_MALFORMED where it is nested deeper than 128 levels or has numbers of more than 256 digits.
 */
export function assertJsonBounds(bytes: Uint8Array, { valuesMax, bytesMax }: JsonBounds): void {
  if (bytes.length <= SHORT_BYTES) return;
  try {
    new JsonScan(bytes, STRUCT).assertBounds(valuesMax, bytesMax);
  } catch (error) {
    if (!(error instanceof JsonSyntaxProblem)) throw error;
  }
}
