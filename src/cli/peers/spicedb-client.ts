import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from '../core/exit-codes.ts';

/** The client package of SpiceDB. It is optional until a user imports from SpiceDB. */
const PACKAGE = '@authzed/authzed-node';
const VERSION = '1.6.1';

type ObjectReference = { readonly objectType: string; readonly objectId: string };
/** A relationship of `authzed.api.v1`, limited to the fields that are read here. */
export type SpiceDbRelationship = {
  readonly resource?: ObjectReference;
  readonly relation: string;
  readonly subject?: { readonly object?: ObjectReference; readonly optionalRelation: string };
  readonly optionalCaveat?: { readonly caveatName: string; readonly context?: unknown };
  /** 64-bit integers are strings. */
  readonly optionalExpiresAt?: { readonly seconds: string | bigint; readonly nanos: number };
};
/** One answer of CheckBulkPermissions; permissionship 2 is an allow, 3 one that lacks an input. */
export type SpiceDbPair = {
  readonly response: {
    readonly oneofKind?: string;
    readonly item?: { readonly permissionship: number };
    readonly error?: { readonly message: string };
  };
};

/** The client of the package, limited to the methods that are used. */
export type SpiceDbClient = {
  exportBulkRelationships(body: object): AsyncIterable<{
    readonly relationships: readonly SpiceDbRelationship[];
  }>;
  readonly promises: {
    readSchema(body: object): Promise<{ readonly schemaText: string }>;
    checkBulkPermissions(body: object): Promise<{ readonly pairs: readonly SpiceDbPair[] }>;
  };
  close(): void;
};

type Library = {
  readonly v1: {
    NewClient(token: string, address: string, security: number): SpiceDbClient;
    readonly ClientSecurity: Readonly<Record<string, number>>;
    readonly PbStruct: { toJson(value: unknown): unknown };
  };
};

/**
 * A client of the SpiceDB at `endpoint`, and a converter of its structs to JSON. Errors: REFUSED if
 * the package is not installed.
 */
export async function openSpiceDbClient(
  endpoint: string,
  token: string,
): Promise<{ readonly client: SpiceDbClient; readonly jsonOf: (value: unknown) => unknown }> {
  const { v1 } = await load();
  const { hostname, port, protocol } = new URL(endpoint);
  const isSecure = protocol === 'https:';
  const security = v1.ClientSecurity[isSecure ? 'SECURE' : 'INSECURE_PLAINTEXT_CREDENTIALS'];
  if (security === undefined) throw missing('has another version');
  const client = v1.NewClient(
    token,
    `${hostname}:${port || (isSecure ? '443' : '50051')}`,
    security,
  );
  return { client, jsonOf: (value) => v1.PbStruct.toJson(value) };
}

/** Loads the package from the folder where the command runs, or from that of the command itself. */
async function load(): Promise<Library> {
  const places = [join(process.cwd(), 'any.js'), import.meta.filename];
  for (const place of places) {
    try {
      const path = createRequire(place).resolve(PACKAGE);
      // A CommonJS module has its exports as the default too.
      const module = (await import(pathToFileURL(path).href)) as Partial<Library> & {
        readonly default?: Library;
      };
      const library = module.v1 === undefined ? module.default : (module as Library);
      if (library?.v1 === undefined) throw missing('has another version');
      return library;
    } catch (error) {
      if (!(error instanceof Error) || Reflect.get(error, 'code') !== 'MODULE_NOT_FOUND')
        throw error;
    }
  }
  throw missing('is not installed');
}

function missing(what: string): AppError {
  return new AppError<CliReason>(
    'REFUSED',
    `${PACKAGE} ${what}: npm install ${PACKAGE}@${VERSION} in the folder where the command runs`,
  );
}
