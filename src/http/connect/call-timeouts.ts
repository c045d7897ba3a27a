import { isGrpcFamily } from './protocol/content-types.ts';

const CONNECT_TIMEOUT = 'connect-timeout-ms';
const GRPC_TIMEOUT = 'grpc-timeout';
/** Of timers; a longer deadline is as good as none. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const GRPC_DIGITS_MAX = 8;
const CONNECT_DIGITS_MAX = 10;
/** The largest number of eight digits. */
const GRPC_NUMBER_MAX = 99_999_999;

/** Hot. Milliseconds of a Connect-Timeout-Ms, 0 where it is ill-formed. O(length), allocates nothing. */
export function connectTimeoutMs(text: string): number {
  return text.length > CONNECT_DIGITS_MAX ? 0 : digitsOf(text, text.length);
}

/** Hot. Milliseconds of a grpc-timeout, 0 where it is ill-formed. O(length), allocates nothing. */
export function grpcTimeoutMs(text: string): number {
  const digits = text.length - 1;
  if (digits > GRPC_DIGITS_MAX) return 0;
  return digitsOf(text, digits) * msOfUnit(text.charCodeAt(digits));
}

/**
 * Cuts the time that a call states to `timeoutMsMax`, and states that one where it states none. Without `timeoutMsMax` only a time
 * is cut that timers cannot hold: it would end at once. What is ill-formed is left to be refused.
 */
export function boundTimeouts(headers: Headers, timeoutMsMax: number | undefined): void {
  const boundMs = timeoutMsMax ?? TIMEOUT_MS_MAX;
  const connect = headers.get(CONNECT_TIMEOUT);
  if (connect !== null && connectTimeoutMs(connect) > boundMs) {
    headers.set(CONNECT_TIMEOUT, String(boundMs));
  }
  const grpc = headers.get(GRPC_TIMEOUT);
  if (grpc !== null && grpcTimeoutMs(grpc) > boundMs) headers.set(GRPC_TIMEOUT, grpcText(boundMs));
  if (timeoutMsMax === undefined) return;
  const isGrpc = isGrpcFamily(headers.get('content-type') ?? '');
  if (isGrpc && grpc === null) headers.set(GRPC_TIMEOUT, grpcText(timeoutMsMax));
  else if (!isGrpc && connect === null) headers.set(CONNECT_TIMEOUT, String(timeoutMsMax));
}

/** Says of a call that has waited what is left of its time, in the header that it said it with; a longer time than fits is left. */
export function setTimeLeft(headers: Headers, leftMs: number): void {
  const ms = Math.max(1, Math.ceil(leftMs));
  if (ms > GRPC_NUMBER_MAX) return;
  if (headers.has(GRPC_TIMEOUT)) headers.set(GRPC_TIMEOUT, `${ms}m`);
  else headers.set(CONNECT_TIMEOUT, String(ms));
}

function grpcText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return ms > GRPC_NUMBER_MAX ? `${seconds}S` : `${ms}m`;
}

/** The number in the first `count` characters, 0 where one of them is no digit. */
function digitsOf(text: string, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return 0;
    value = value * 10 + digit;
  }
  return value;
}

/** Of gRPC's H, M, S, m, u and n. */
function msOfUnit(code: number): number {
  switch (code) {
    case 0x48:
      return 3_600_000;
    case 0x4d:
      return 60_000;
    case 0x53:
      return 1_000;
    case 0x6d:
      return 1;
    case 0x75:
      return 0.001;
    case 0x6e:
      return 0.000_001;
    default:
      return 0;
  }
}
