import { TIMEOUT_MS_MAX } from './adapter-router.ts';

/** A deadline beyond what timers can hold would fire at once; it is as good as the longest one. */
export function clampTimeouts(header: Headers): void {
  const connect = header.get('connect-timeout-ms');
  if (connect !== null && Number(connect) > TIMEOUT_MS_MAX && /^\d{1,10}$/.test(connect)) {
    header.set('connect-timeout-ms', String(TIMEOUT_MS_MAX));
  }
  const grpc = header.get('grpc-timeout');
  const parts = grpc === null ? null : /^(\d{1,8})([HMS])$/.exec(grpc);
  if (parts === null) return;
  const secondsOfUnit = parts[2] === 'H' ? 3_600 : parts[2] === 'M' ? 60 : 1;
  const secondsMax = Math.floor(TIMEOUT_MS_MAX / 1_000);
  if (Number(parts[1]) * secondsOfUnit > secondsMax) header.set('grpc-timeout', `${secondsMax}S`);
}

/** Says of a call that has waited what is left of its time, in the header that it said it with; a longer time than fits is left. */
export function setTimeLeft(headers: Headers, leftMs: number): void {
  const ms = Math.max(1, Math.ceil(leftMs));
  if (ms > GRPC_TIMEOUT_MAX) return;
  if (headers.has('grpc-timeout')) headers.set('grpc-timeout', `${ms}m`);
  else headers.set('connect-timeout-ms', String(ms));
}

/** Eight digits. */
const GRPC_TIMEOUT_MAX = 99_999_999;
