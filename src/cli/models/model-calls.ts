import { usage } from '../../command-line/parse-words.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import type { ServiceConnection } from '../core/connection.ts';
import type { TupleJson } from '../core/tuple-json.ts';

/** Answers of gatehouse.v1.ModelService in JSON; counts are strings. */
export type ActivationJson = {
  readonly version: string;
  /** `MODEL_ACTIVATION_STATE_ACTIVE`. */
  readonly state: string;
  readonly tuples_scanned: string;
  readonly tuples_refused: string;
  readonly examples: readonly { readonly tuple: TupleJson; readonly problem: string }[];
  readonly dropped_namespaces: readonly string[];
};

export type VersionJson = {
  readonly version: string;
  readonly created_at?: string;
  readonly created_by: string;
  readonly rpc: string;
  readonly comment: string;
  readonly rolled_back_to: string;
  readonly forced: boolean;
  readonly state: string;
};

export type ProblemJson = {
  readonly path: string;
  readonly message: string;
  /** Line of the readable form, from 1; 0: none. */
  readonly line: number;
  readonly column: number;
};

export type ModelJson = {
  /** Absent for the built-in model. */
  readonly version?: VersionJson;
  /** Empty for the built-in model. */
  readonly model_json: string;
  readonly model_gate: string;
};

const VERSION = /^[1-9]\d{0,14}$/;

/** Calls a method of ModelService for the project of the connection. Errors: those of `call`. */
export async function modelCall<T>(
  connection: ServiceConnection,
  method: string,
  body: object,
): Promise<T> {
  const { project } = connection;
  const named = project === '' ? {} : { project_id: project };
  return await call<T>(connection, `gatehouse.v1.ModelService/${method}`, { ...named, ...body });
}

/**
 * The version that the only word of a command names; undefined without a word. Errors:
 * INVALID_REQUEST.
 */
export function versionOf({ words }: CliLine): string | undefined {
  const [version, ...others] = words;
  if (others.length > 0) throw usage('name one version');
  if (version === undefined || VERSION.test(version)) return version;
  throw usage(`${version}: a version is a number from 1`);
}

/** Short form of a state: `active` for `MODEL_ACTIVATION_STATE_ACTIVE`. */
export function stateText(state: string): string {
  return state.replace('MODEL_ACTIVATION_STATE_', '').toLowerCase();
}
