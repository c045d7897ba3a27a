import type { ConnectError } from '@connectrpc/connect';
import * as connect from '@connectrpc/connect/protocol-connect';
import * as grpc from '@connectrpc/connect/protocol-grpc';
import * as web from '@connectrpc/connect/protocol-grpc-web';
import { ANSWER_JSON } from '../../../shared/answer-json.ts';
import { AppError } from '../../../shared/app-error.ts';
import type { SharedReason } from '../../../shared/reasons.ts';
import { mediaTypeOf } from '../../header-text.ts';
import { setGrpcStatus } from './grpc-trailer.ts';

/** Wire form of a call, by its content type: how its messages and its answer are encoded. */
export type Wire = {
  readonly protocol: 'connect' | 'grpc' | 'grpc-web';
  /** False for a unary call of Connect, whose body is the message. */
  readonly isEnveloped: boolean;
  readonly isBinary: boolean;
  /** The content type of the answer. */
  readonly answerType: string;
  /** Names of the headers for the encoding of a message, the encodings that are accepted, and the timeout. */
  readonly encoding: string;
  readonly accepted: string;
  readonly timeout: string;
  readonly parseTimeout: typeof connect.parseTimeout;
  /** The flag of an envelope that holds no message; 0 where the protocol has no such envelope. */
  readonly endFlag: number;
  /**
   * Encodes how a call has ended, which gRPC and gRPC-Web note in `trailer`. Returns the content of the last envelope; null
   * where there is none.
   */
  readonly end: (trailer: Headers, error: ConnectError | undefined) => Uint8Array | null;
};

const connectEnd = connect.createEndStreamSerialization(ANSWER_JSON);

const CONNECT_UNARY = {
  protocol: 'connect',
  isEnveloped: false,
  encoding: connect.headerUnaryEncoding,
  accepted: connect.headerUnaryAcceptEncoding,
  timeout: connect.headerTimeout,
  parseTimeout: connect.parseTimeout,
  endFlag: 0,
  end: () => null,
} as const;

const CONNECT_STREAM = {
  ...CONNECT_UNARY,
  isEnveloped: true,
  encoding: connect.headerStreamEncoding,
  accepted: connect.headerStreamAcceptEncoding,
  endFlag: connect.endStreamFlag,
  end: (metadata: Headers, error: ConnectError | undefined) =>
    connectEnd.serialize(error === undefined ? { metadata } : { metadata, error }),
} as const;

const GRPC = {
  protocol: 'grpc',
  isEnveloped: true,
  encoding: grpc.headerEncoding,
  accepted: grpc.headerAcceptEncoding,
  timeout: grpc.headerTimeout,
  parseTimeout: grpc.parseTimeout,
  endFlag: 0,
  end: (trailer: Headers, error: ConnectError | undefined) => {
    setGrpcStatus(trailer, error);
    return null;
  },
} as const;

const GRPC_WEB = {
  ...GRPC,
  protocol: 'grpc-web',
  endFlag: web.trailerFlag,
  end: (trailer: Headers, error: ConnectError | undefined) =>
    web.trailerSerialize(setGrpcStatus(trailer, error)),
} as const;

type WireFamily = Omit<Wire, 'isBinary' | 'answerType'>;

function familyOf(
  family: WireFamily,
  binaryType: string,
  jsonType: string,
): (isBinary: boolean) => Wire {
  const binary = { ...family, isBinary: true, answerType: binaryType };
  const json = { ...family, isBinary: false, answerType: jsonType };
  return (isBinary) => (isBinary ? binary : json);
}

const unaryWire = familyOf(
  CONNECT_UNARY,
  connect.contentTypeUnaryProto,
  connect.contentTypeUnaryJson,
);
const streamWire = familyOf(
  CONNECT_STREAM,
  connect.contentTypeStreamProto,
  connect.contentTypeStreamJson,
);
const grpcWire = familyOf(GRPC, grpc.contentTypeProto, grpc.contentTypeJson);
const webWire = familyOf(GRPC_WEB, web.contentTypeProto, web.contentTypeJson);

/** The wire form of a call of a method, unary or not; undefined for a content type that it does not take. */
export function wireOf(contentType: string, isUnary: boolean): Wire | undefined {
  const ofConnect = connect.parseContentType(contentType);
  if (ofConnect !== undefined) {
    if (ofConnect.stream === isUnary) return undefined;
    return (isUnary ? unaryWire : streamWire)(ofConnect.binary);
  }
  const ofGrpc = grpc.parseContentType(contentType);
  if (ofGrpc !== undefined) return grpcWire(ofGrpc.binary);
  const ofWeb = web.parseContentType(contentType);
  // Base64, for browsers that read no bytes, is not taken.
  return ofWeb === undefined || ofWeb.text ? undefined : webWire(ofWeb.binary);
}

/**
 * The enveloped form of a call whose content type begins like that of a protocol, whatever its messages are; undefined for
 * others.
 */
export function envelopedWireOf(contentType: string): Wire | undefined {
  if (contentType.startsWith('application/grpc-web')) return webWire(true);
  if (contentType.startsWith('application/grpc')) return grpcWire(true);
  return contentType.startsWith('application/connect+') ? streamWire(true) : undefined;
}

const UNARY_TYPES: readonly string[] = [
  connect.contentTypeUnaryJson,
  connect.contentTypeUnaryProto,
];
/** Names the types of unary calls of Connect, as the header Accept-Post does. */
export const UNARY_TYPES_TEXT = UNARY_TYPES.join(', ');

/** The content type of a unary call without its parameters and in lower case; any other type as it is. */
export function plainUnaryType(contentType: string): string {
  const type = mediaTypeOf(contentType);
  return UNARY_TYPES.includes(type) ? type : contentType;
}

/** Header with the version of the Connect protocol; gRPC and gRPC-Web do not have it. */
export const VERSION_HEADER = 'connect-protocol-version';

/** Hot. Whether a request that states `version` ('' for none) speaks the protocol that we speak. */
export function isKnownVersion(version: string): boolean {
  return version === '' || version === '1';
}

/**
 * Refuses a call in another version of the Connect protocol, as Connect's Go library does. The TypeScript library does so
 * only where it also demands the header, which plain HTTP clients leave out. Errors: BODY_MALFORMED.
 */
export function assertKnownVersion(headers: Headers): void {
  if (isKnownVersion(headers.get(VERSION_HEADER) ?? '')) return;
  throw new AppError<SharedReason>('BODY_MALFORMED', 'Connect-Protocol-Version must be 1');
}
